package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// operation is one call of one side. Its key, token and event are prepared beforehand.
type operation func(context.Context) error

// scenario is a task that both sides perform.
type scenario struct {
	name  string
	what  string     // description for the report
	trips [sides]int // number of requests to DynamoDB for one operation of each side
	floor func(r *rig, i int) operation
	ours  func(r *rig, i int) operation

	aims, aimsAtOnce aims // aims for one operation at a time, and for many at once
	// oneIn divides the number of samples; 0 means 1.
	oneIn int
	// alone is true if the scenario is measured only with one operation at a time. It involves no
	// waiting, so many operations at once would only measure the scheduler.
	alone bool
	// sides has other names for the two sides, if they are not the bare SDK and the toolkit.
	sides [sides]string
	same  bool // both sides send the same requests although sides is set
}

// aimed returns the aims for the comparison.
func (c *comparison) aimed() aims {
	if c.plan.atOnce > 1 {
		return c.scenario.aimsAtOnce
	}
	return c.scenario.aims
}

// side returns the name of a side.
func (s scenario) side(i int) string {
	if s.sides[i] != "" {
		return s.sides[i]
	}
	return sideNames[i]
}

// sameRequests reports whether both sides send the same requests.
func (s scenario) sameRequests() bool { return s.same || s.sides == [sides]string{} }

var scenarios = []scenario{
	{
		name: "new", what: "a key that nobody used: lock, handler, completion", trips: [sides]int{2, 2},
		aims: aims{0.88, aimP99, 0.70, aimAllocated}, aimsAtOnce: aims{median: aimAtOnce, p99: aimP99},
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
		name: "replay", what: "a request sent again after it was answered", trips: [sides]int{1, 1},
		aims: aims{0.78, aimP99, 0.58, aimAllocated}, aimsAtOnce: aims{median: aimAtOnce, p99: aimP99},
		floor: func(r *rig, i int) operation { return r.floorAgain(r.completed, i, statusCompleted) },
		ours:  func(r *rig, i int) operation { return r.oursAgain(r.guarded, r.completed, i, http.StatusCreated, true) },
	},
	{
		name: "replay, store only", what: "the same by dynamostore alone: what is missing here is the guard's part", trips: [sides]int{1, 1}, oneIn: 4,
		floor: func(r *rig, i int) operation { return r.floorAgain(r.completed, i, statusCompleted) },
		ours:  (*rig).storeAgain,
	},
	{
		name: "conflict", what: "a request sent again while it is in progress elsewhere", trips: [sides]int{1, 1},
		aims: aims{0.76, aimP99, 0.57, aimAllocated}, aimsAtOnce: aims{median: aimAtOnce, p99: aimP99},
		floor: func(r *rig, i int) operation { return r.floorAgain(r.inProgress, i, statusInProgress) },
		ours: func(r *rig, i int) operation {
			return r.oursAgain(r.guarded, r.inProgress, i, http.StatusConflict, false)
		},
	},
	{
		name: "new : by hand", what: "the toolkit against the limit: ready made text, signed by the SDK's signer, over net/http", trips: [sides]int{2, 2},
		oneIn: 4, sides: [sides]string{"by hand", "toolkit"}, same: true,
		floor: func(r *rig, _ int) operation {
			id, token := freshID(), freshToken()
			return func(ctx context.Context) error { return r.limit.first(ctx, id, token, r.deadline.Add(maxSkew)) }
		},
		ours: func(r *rig, _ int) operation {
			e := request(rand.Text(), r.body)
			return func(ctx context.Context) error { return send(ctx, r.guarded, e, http.StatusCreated, false) }
		},
	},
	{
		name: "replay : by hand", what: "the same, a request sent again", trips: [sides]int{1, 1},
		oneIn: 4, sides: [sides]string{"by hand", "toolkit"}, same: true,
		floor: func(r *rig, i int) operation {
			id, token := r.completed[i%len(r.completed)].id, freshToken()
			return func(ctx context.Context) error {
				return r.limit.again(ctx, id, token, r.deadline.Add(maxSkew), statusCompleted)
			}
		},
		ours: func(r *rig, i int) operation { return r.oursAgain(r.guarded, r.completed, i, http.StatusCreated, true) },
	},
	{
		name: "new, SDK transport", what: "a new request by a store that sends through the SDK's client", trips: [sides]int{2, 2},
		oneIn: 4,
		floor: func(r *rig, _ int) operation {
			id, token := freshID(), freshToken()
			return func(ctx context.Context) error { return r.bare.first(ctx, id, token, r.deadline.Add(maxSkew)) }
		},
		ours: func(r *rig, _ int) operation {
			e := request(rand.Text(), r.body)
			return func(ctx context.Context) error { return send(ctx, r.bySDK, e, http.StatusCreated, false) }
		},
	},
	{
		name: "replay, SDK transport", what: "the same, a request sent again", trips: [sides]int{1, 1},
		oneIn: 4,
		floor: func(r *rig, i int) operation { return r.floorAgain(r.completed, i, statusCompleted) },
		ours:  func(r *rig, i int) operation { return r.oursAgain(r.bySDK, r.completed, i, http.StatusCreated, true) },
	},
	{
		name: "replay, cached", what: "a replay from the process's memory, against the bare SDK's refused PutItem", trips: [sides]int{1, 0},
		oneIn: 8, alone: true, sides: [sides]string{"bare SDK", "from memory"},
		floor: func(r *rig, i int) operation { return r.floorAgain(r.completed, i, statusCompleted) },
		ours:  func(r *rig, i int) operation { return r.oursAgain(r.cached, r.completed, i, http.StatusCreated, true) },
	},
	{
		name: "optimistic, new", what: "two enlisted writes and no lock: one TransactWriteItems of three items", trips: [sides]int{1, 1},
		aims: aims{median: aimTransaction}, oneIn: 4,
		floor: func(r *rig, i int) operation {
			id, token, account := freshID(), freshToken(), accountOf(i)
			return func(ctx context.Context) error { return r.bare.claimed(ctx, id, token, account) }
		},
		ours: func(r *rig, i int) operation { return r.pays(r.optimistic, i) },
	},
	{
		name: "locked, new", what: "the same writes with a lock: a PutItem and the TransactWriteItems", trips: [sides]int{2, 2},
		oneIn: 8,
		floor: func(r *rig, i int) operation {
			id, token, account := freshID(), freshToken(), accountOf(i)
			return func(ctx context.Context) error {
				return r.bare.locked(ctx, id, token, account, r.deadline.Add(maxSkew))
			}
		},
		ours: func(r *rig, i int) operation { return r.pays(r.locking, i) },
	},
	{
		name: "optimistic : locked", what: "the toolkit without a lock against the toolkit with one, new requests", trips: [sides]int{2, 1},
		oneIn: 8, sides: [sides]string{"locked", "optimistic"},
		floor: func(r *rig, i int) operation { return r.pays(r.lockingToo, i) },
		ours:  func(r *rig, i int) operation { return r.pays(r.optimistic, i) },
	},
	{
		name: "optimistic, lost", what: "a duplicate of a finished record: the handler runs, the TransactWriteItems is cancelled", trips: [sides]int{1, 1},
		oneIn: 8,
		floor: func(r *rig, i int) operation {
			i %= len(r.claimed)
			id, token, account := r.claimed[i].id, freshToken(), accountOf(i)
			return func(ctx context.Context) error { return r.bare.lost(ctx, id, token, account) }
		},
		ours: func(r *rig, i int) operation {
			i %= len(r.claimed)
			e := r.debit(r.claimed[i].key, i)
			return func(ctx context.Context) error { return send(ctx, r.optimistic, e, http.StatusCreated, true) }
		},
	},
}

// pays returns an operation that sends a new request to a handler that enlists writes.
func (r *rig) pays(h handler, i int) operation {
	e := r.debit(rand.Text(), i)
	return func(ctx context.Context) error { return send(ctx, h, e, http.StatusCreated, false) }
}

func (r *rig) floorAgain(from []record, i int, status string) operation {
	id, token := from[i%len(from)].id, freshToken()
	return func(ctx context.Context) error {
		return r.bare.again(ctx, id, token, r.deadline.Add(maxSkew), status)
	}
}

func (r *rig) oursAgain(h handler, from []record, i, status int, replayed bool) operation {
	e := request(from[i%len(from)].key, r.body)
	return func(ctx context.Context) error { return send(ctx, h, e, status, replayed) }
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

// freshID and freshToken return texts as long as the ids and tokens of the guard.
func freshID() string { return "lambdaidem#" + randomText(43) }

func freshToken() string { return randomText(22) }

func randomText(n int) string { return (rand.Text() + rand.Text())[:n] }
