package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

const (
	statusCompleted  = "COMPLETED"
	statusInProgress = "INPROGRESS"

	bodySize = 1 << 10 // bytes, of each request
	maxSkew  = 2 * time.Second
)

// rig is both sides on one table, and the records that they meet.
type rig struct {
	wires    [sides]*wire
	bare     *floor
	store    *dynamostore.Store
	guarded  handler
	body     string
	deadline time.Time // of every operation, as of a Lambda invocation

	completed, inProgress []record
}

// record is one that is there: the floor knows it by its id, the guard by its key.
type record struct{ key, id string }

// newRig makes the table, records what dynamostore sends, and leaves so many
// records for replays, and as many for conflicts.
func newRig(ctx context.Context, cfg aws.Config, records int) (*rig, error) {
	r := &rig{body: ordinary(bodySize)}
	r.deadline, _ = ctx.Deadline()
	clients := [sides]*dynamodb.Client{}
	for side := range sides {
		r.wires[side] = newWire()
		cfg.HTTPClient = r.wires[side]
		clients[side] = dynamodb.NewFromConfig(cfg)
	}
	table := "bench-" + rand.Text()
	if err := dynamostore.CreateTable(ctx, clients[floorSide], table); err != nil {
		return nil, err
	}
	r.store = dynamostore.New(clients[oursSide], table)
	guard := lambdaidem.New(r.store)
	r.guarded = guard.APIGatewayV2(create)
	r.bare = &floor{client: clients[floorSide]}

	var err error
	for range records {
		if err = errors.Join(err,
			r.leave(&r.completed, func(e events.APIGatewayV2HTTPRequest) error {
				return send(ctx, r.guarded, e, http.StatusCreated, false)
			}),
			r.leave(&r.inProgress, func(e events.APIGatewayV2HTTPRequest) error {
				if _, err := guard.With(quietly).APIGatewayV2(neverEnds)(ctx, e); err == nil {
					return errors.New("an uncertain end was answered")
				}
				return nil
			})); err != nil {
			return nil, fmt.Errorf("prepare the records: %w", err)
		}
	}
	return r, nil
}

func quietly(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard }

// close ends what the rig keeps open.
func (r *rig) close() {
	for _, w := range r.wires {
		w.close()
	}
}

// leave makes one more record by a guarded call, and keeps the requests of it.
func (r *rig) leave(all *[]record, call func(events.APIGatewayV2HTTPRequest) error) error {
	key := rand.Text()
	bodies, err := r.wires[oursSide].record(func() error { return call(request(key, r.body)) })
	if err != nil {
		return err
	}
	for i, keep := range []**recorded{&r.bare.lock, &r.bare.complete} {
		if i < len(bodies) {
			if *keep, err = parse(bodies[i]); err != nil {
				return err
			}
		}
	}
	*all = append(*all, record{key: key, id: text(r.bare.lock.Item["id"])})
	return nil
}

// operation is one call of one side, its key, token and event at hand.
type operation func(context.Context) error

// scenario is something that both sides do alike.
type scenario struct {
	name  string
	what  string // in words
	trips int    // to DynamoDB, each
	floor func(r *rig, i int) operation
	ours  func(r *rig, i int) operation
}

var scenarios = []scenario{
	{
		name: "new", what: "a key that nobody used: lock, handler, completion", trips: 2,
		floor: func(r *rig, _ int) operation {
			id, token := freshID(), freshToken()
			return func(ctx context.Context) error { return r.bare.first(ctx, id, token, r.deadline.Add(maxSkew)) }
		},
		ours: func(r *rig, _ int) operation {
			e := request(rand.Text(), r.body)
			return func(ctx context.Context) error { return send(ctx, r.guarded, e, http.StatusCreated, false) }
		},
	},
	{
		name: "replay", what: "a request sent again after it was answered", trips: 1,
		floor: func(r *rig, i int) operation { return r.floorAgain(r.completed, i, statusCompleted) },
		ours:  func(r *rig, i int) operation { return r.oursAgain(r.completed, i, http.StatusCreated, true) },
	},
	{
		name: "replay, store only", what: "the same by dynamostore alone: what is missing here is the guard's part", trips: 1,
		floor: func(r *rig, i int) operation { return r.floorAgain(r.completed, i, statusCompleted) },
		ours:  (*rig).storeAgain,
	},
	{
		name: "conflict", what: "a request sent again while it is in progress elsewhere", trips: 1,
		floor: func(r *rig, i int) operation { return r.floorAgain(r.inProgress, i, statusInProgress) },
		ours:  func(r *rig, i int) operation { return r.oursAgain(r.inProgress, i, http.StatusConflict, false) },
	},
}

func (r *rig) floorAgain(from []record, i int, status string) operation {
	id, token := from[i%len(from)].id, freshToken()
	return func(ctx context.Context) error {
		return r.bare.again(ctx, id, token, r.deadline.Add(maxSkew), status)
	}
}

func (r *rig) oursAgain(from []record, i, status int, replayed bool) operation {
	e := request(from[i%len(from)].key, r.body)
	return func(ctx context.Context) error { return send(ctx, r.guarded, e, status, replayed) }
}

func (r *rig) storeAgain(i int) operation {
	claim := lambdaidem.Claim{
		ID: r.completed[i%len(r.completed)].id, Token: freshToken(), LeaseEnd: r.deadline.Add(maxSkew),
		Scope: text(r.bare.lock.Item["scope"]), Fingerprint: text(r.bare.lock.Item["validation"]),
	}
	return func(ctx context.Context) error {
		claim.Now = time.Now()
		claim.Expires = claim.Now.Add(24 * time.Hour)
		rec, err := r.store.Acquire(ctx, claim)
		if err == nil && (rec.State != lambdaidem.Completed || rec.Fingerprint != claim.Fingerprint) {
			err = fmt.Errorf("the record is %+v; want it completed", rec)
		}
		return err
	}
}

// freshID and freshToken are as long as dynamostore's and the guard's.
func freshID() string { return "lambdaidem#" + randomText(43) }

func freshToken() string { return randomText(22) }

func randomText(n int) string { return (rand.Text() + rand.Text())[:n] }
