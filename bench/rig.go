package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

const (
	statusCompleted  = "COMPLETED"
	statusInProgress = "INPROGRESS"

	bodySize = 1 << 10 // bytes of each request's body
	maxSkew  = 2 * time.Second
)

// rig has everything that the two sides need: a table with the records that they use, and their
// clients and handlers.
type rig struct {
	wires    [sides]*wire
	bare     *floor
	limit    *limit
	store    *dynamostore.Store
	guarded  handler
	bySDK    handler // like guarded, with the SDK's transport
	cached   handler // like guarded, with a cache that has the completed records
	body     string
	deadline time.Time // deadline of every operation, like that of a Lambda invocation

	// Handlers that enlist writes: locking with a lock, optimistic without one. lockingToo is like
	// locking, but sends its requests through the floor's wire, to be compared with optimistic.
	locking, lockingToo, optimistic handler

	completed, inProgress, claimed []record
}

// record is an existing record. The floor identifies it by its id, the guard by its key.
type record struct{ key, id string }

// newRig creates the table, records the requests that dynamostore sends, and creates the given
// number of records for replays and of records for conflicts.
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
	if which, why := r.store.Transport(); which != dynamostore.TransportDirect {
		return nil, fmt.Errorf("the store's transport is %q, not the one that is to be measured: %s", which, why)
	}
	r.bare = &floor{client: clients[floorSide]}
	r.limit = newLimit(cfg, r.wires[floorSide])
	r.bySDK = lambdaidem.New(dynamostore.New(clients[oursSide], table, func(o *dynamostore.Options) { o.Transport = dynamostore.TransportSDK })).APIGatewayV2(create)
	r.cached = guard.With(cached).APIGatewayV2(create)
	pay := payFrom(table)
	r.locking = guard.APIGatewayV2(pay)
	r.lockingToo = lambdaidem.New(dynamostore.New(clients[floorSide], table)).APIGatewayV2(pay)
	r.optimistic = guard.With(optimistically).APIGatewayV2(pay)

	err := openAccounts(ctx, clients[floorSide], table)
	// Keep the requests of a lock and a transaction. Their record is not used again.
	err = errors.Join(err, r.leave(new([]record), []**recorded{&r.bare.lock, &r.bare.commit}, func(key string) error {
		return send(ctx, r.locking, r.debit(key, 0), http.StatusCreated, false)
	}))
	for i := range records {
		if err = errors.Join(err,
			r.leave(&r.claimed, []**recorded{&r.bare.claim}, func(key string) error {
				return send(ctx, r.optimistic, r.debit(key, i), http.StatusCreated, false)
			}),
			r.leave(&r.completed, []**recorded{&r.bare.lock, &r.bare.complete}, func(key string) error {
				return send(ctx, r.guarded, request(key, r.body), http.StatusCreated, false)
			}),
			r.leave(&r.inProgress, []**recorded{&r.bare.lock}, func(key string) error {
				if _, err := guard.With(quietly).APIGatewayV2(neverEnds)(ctx, request(key, r.body)); err == nil {
					return errors.New("an uncertain end was answered")
				}
				return nil
			})); err != nil {
			return nil, fmt.Errorf("prepare the records: %w", err)
		}
		// Put the answer into the cache.
		if err = send(ctx, r.cached, request(r.completed[i].key, r.body), http.StatusCreated, true); err != nil {
			return nil, fmt.Errorf("prepare the cache: %w", err)
		}
	}
	return r, r.cutLimit(ctx, guard)
}

// cutLimit makes the templates of r.limit from the requests of one more call.
func (r *rig) cutLimit(ctx context.Context, guard *lambdaidem.Guard) error {
	h := guard.APIGatewayV2(create)
	bodies, err := r.wires[oursSide].record(func() error { return send(ctx, h, request(rand.Text(), r.body), http.StatusCreated, false) })
	if err != nil || len(bodies) != 2 {
		return errors.Join(err, fmt.Errorf("a new request sent %d requests; want 2", len(bodies)))
	}
	r.limit.lock, err = templateOf(string(bodies[0]), "id", "token", "started_at", "in_progress_expiration", "expiration", ":now_s", ":now_ms")
	if err != nil {
		return err
	}
	r.limit.complete, err = templateOf(string(bodies[1]), "id", ":token", ":completed_at", ":expiration", ":now_s", ":now_ms")
	return err
}

func quietly(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard }

// close closes the connections.
func (r *rig) close() {
	for _, w := range r.wires {
		w.close()
	}
}

// leave creates a record by a guarded call with a new key. It adds the record to all, and stores
// the requests of the call in keep.
func (r *rig) leave(all *[]record, keep []**recorded, call func(key string) error) error {
	key := rand.Text()
	bodies, err := r.wires[oursSide].record(func() error { return call(key) })
	if err != nil {
		return err
	}
	if len(bodies) != len(keep) {
		return fmt.Errorf("%d requests were sent; want %d", len(bodies), len(keep))
	}
	for i, to := range keep {
		if *to, err = parse(bodies[i]); err != nil {
			return err
		}
	}
	*all = append(*all, record{key: key, id: (*keep[0]).id()})
	return nil
}
