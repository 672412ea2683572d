package simulator

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// actor is one invocation of the function, or one thing that an operator does. It runs the real
// guard and the real dynamostore, whose requests go over the world's network. It has its own
// process and clock, unless the plan has an outage: see process.
type actor struct {
	w             *world
	id            uint64
	rng           *rand.Rand
	skew          time.Duration
	policy        lambdaidem.Policy
	optimistic    bool           // it takes no lock (Options.Optimistic)
	sent          int            // how many requests it has sent
	killed        chan struct{}  // closed by kill
	dead          bool           // under w.mu
	clientGone    bool           // its client has stopped waiting; under w.mu
	met           map[Fault]bool // the faults that its requests met; under w.mu
	releasesSent  int            // how many releases it sent; under w.mu
	failedOpen    bool           // it failed open; under w.mu
	readRecord    bool           // it has sent a request that reads its record; under w.mu
	knowsRecord   bool           // a reply told it the state of its record; under w.mu
	cancelReasons []string       // of the last transaction whose reply it got; nil if not cancelled; under w.mu
	stale         bool           // one of its transactions arrived again after DynamoDB had forgotten the token; under w.mu
	order         order
	ending        Ending             // how its handler ends; Running: chance decides
	began         time.Time          // when the invocation began
	ends          time.Time          // when Lambda kills it
	run           *run               // the run of its handler; nil before it begins
	cancel        context.CancelFunc // called when its client hangs up; set before it starts
	ctx           context.Context
	region        int       // the index of the Region where it runs
	endedAt       time.Time // when its invocation ended; zero: it has not ended

	process   *process   // serves this invocation and others; nil if it has a process of its own
	operation *operation // what the operator does; nil for an invocation
}

// newActor returns the actor for an order. id is a number that no other actor has.
func (w *world) newActor(id uint64, o order) *actor {
	// Each actor has its own random stream, so that what one actor draws doesn't change what
	// others draw.
	a := &actor{w: w, id: id, order: o, killed: make(chan struct{}), met: map[Fault]bool{}, rng: rand.New(rand.NewPCG(w.seed, id))}
	if a.w.plan.skew > 0 {
		a.skew = time.Duration(a.rng.Int64N(int64(a.w.plan.skew)))
		w.journal.fault(SkewedClock)
	}
	a.drawMode()
	if w.global != nil {
		w.global.place(a)
	}
	a.began = time.Now()
	a.ends = a.began.Add(a.w.plan.timeout)
	a.ctx, a.cancel = context.WithDeadline(context.WithValue(context.Background(), actorKey{}, a), a.ends)
	return a
}

// drawMode decides whether the attempt runs optimistically, and under which policy.
func (a *actor) drawMode() {
	share := a.w.plan.effects.optimistic
	if a.optimistic = share > 0 && a.order.Unguarded == "" && a.rng.Float64() < share; a.optimistic {
		a.policy = lambdaidem.Rerun // New allows no other policy with Optimistic
		return
	}
	a.policy = a.drawPolicy()
}

// drawPolicy returns the plan's policy. If the plan mixes policies, it returns the other policy half
// of the time.
func (a *actor) drawPolicy() lambdaidem.Policy {
	policy, other := lambdaidem.Rerun, lambdaidem.Hold
	if a.w.plan.policyHold {
		policy, other = other, policy
	}
	if a.w.plan.mixed && a.rng.IntN(2) == 0 {
		a.w.journal.fault(OtherPolicy)
		a.w.journal.add(entry{kind: kindPolicy, actor: a, text: "has policy " + string(other)})
		return other
	}
	return policy
}

// underHold reports whether the attempt is under policy Hold.
func (a *actor) underHold() bool { return a.policy == lambdaidem.Hold }

func (a *actor) clock() time.Time { return time.Now().Add(a.skew) }

// Read implements io.Reader. It is the guard's source of random tokens and jitter.
func (a *actor) Read(p []byte) (int, error) {
	var b [8]byte
	for i := 0; i < len(p); i += len(b) {
		binary.LittleEndian.PutUint64(b[:], a.rng.Uint64())
		copy(p[i:], b[:])
	}
	return len(p), nil
}

// exitIfKilled ends the calling goroutine if the process was killed.
func (a *actor) exitIfKilled() {
	select {
	case <-a.killed:
		runtime.Goexit()
	default:
	}
}

// kill ends a process as SIGKILL does: it does nothing from now on.
func (w *world) kill(a *actor, why Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a.dead {
		return
	}
	a.dead = true
	close(a.killed)
	w.journal.addLocked(entry{kind: kindDeath, actor: a, fault: why})
	w.journal.endRunLocked(a, Killed)
}

// guard returns the guard of the actor's process.
func (a *actor) guard() *lambdaidem.Guard {
	if a.process == nil {
		return a.newGuard(a)
	}
	if a.process.guard == nil {
		a.process.guard = a.newGuard(a.process)
	}
	return a.process.guard
}

// environment is what a guard uses of its process.
type environment interface {
	io.Reader
	lambdaidem.Observer
}

// newGuard returns a guard that is configured as in a function's main.
func (a *actor) newGuard(in environment) *lambdaidem.Guard {
	p := &a.w.plan
	inner := dynamostore.New(a.w.functions, table, func(o *dynamostore.Options) {
		o.Random = a.rng.Float64
		p.large.options(o)
		o.Transport = a.transport()
		a.leaseIndex(o)
		o.AttemptTimeout = 1_500_000_007 // so that it never ends at the same time as one of the guard's own limits
	})
	var store lambdaidem.Store = inner
	if m := a.w.mut; m != nil && m.Store != nil {
		store = m.Store(store, a)
	}
	if m := a.w.mut; m != nil && m.Tx != nil {
		store = mutatedTransactions{inner, m.Tx, a}
	}
	return lambdaidem.New(store, func(o *lambdaidem.Options) {
		o.Namespace = "payments"
		o.TTL, o.MaxSkew, o.Wait, o.FailOpen = p.ttl, p.maxSkew, p.wait, p.failOpen && !a.optimistic
		o.Policy, o.Optimistic, o.KeyOptional = a.policy, a.optimistic || p.effects.optimistic == 1, p.effects.unguarded > 0
		o.Clock, o.Random, o.Observer = a.clock, in, in
		a.version().options(o)
		if p.lookUp {
			lookUps(o)
		}
		if m := a.w.mut; m != nil && m.Options != nil {
			m.Options(o)
		}
	})
}

// transport returns one of the store's two transports, depending on the seed and the process's
// number. In a small case all processes have the same, because attempts that mirror each other must
// not differ.
func (a *actor) transport() dynamostore.Transport {
	if a.w.tree != nil || (a.w.seed+a.starter().id)%2 == 0 {
		return dynamostore.TransportDirect
	}
	return dynamostore.TransportSDK
}

// Observe implements lambdaidem.Observer. It records the guard's events in the journal.
func (a *actor) Observe(_ context.Context, e lambdaidem.Event) {
	a.w.journal.event(a, e)
}

// invoke runs the invocation, and returns what Lambda returns to the client.
func (a *actor) invoke() result {
	defer a.leave()
	got := make(chan result, 1)
	go func() {
		ended := result{failed: "process died"}
		defer func() {
			if v := recover(); v != nil {
				ended = result{failed: fmt.Sprintf("panic: %v", v)}
				a.w.journal.judge.panicked(a, v)
			}
			got <- ended
		}()
		defer a.cancel()
		handle := a.handle
		if m := a.w.mut; m != nil && m.Handler != nil {
			handle = m.Handler(a.handle)
		}
		ctx := context.WithValue(a.ctx, requestKey{}, a.ctx)
		resp, err := a.guard().APIGatewayV2(handle)(ctx, a.event())
		if err != nil {
			ended = result{failed: err.Error()}
			return
		}
		ended = result{Status: resp.StatusCode, Body: resp.Body, Replayed: resp.Headers["X-Idempotency-Replayed"] != ""}
		if resp.Headers["Content-Type"] == "application/problem+json" {
			var doc struct{ Code string }
			if err := json.Unmarshal([]byte(resp.Body), &doc); err == nil {
				ended.Code = doc.Code
			}
		}
	}()
	timeout := time.AfterFunc(time.Until(a.ends)+time.Millisecond, func() {
		if !a.hasStalled() { // the timeout of a process that stood still does not end it
			a.w.journal.fault(TimedOut)
			a.w.journal.judge.overran(a)
			a.w.kill(a, TimedOut)
		}
	})
	defer timeout.Stop()
	select {
	case r := <-got:
		if a.isDead() {
			return result{failed: "process died"}
		}
		return r
	case <-a.killed:
		<-got // its goroutine ends; the result doesn't count
		return result{failed: "process died"}
	}
}

func (a *actor) isDead() bool {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	return a.dead
}

// hasStalled reports whether the process has ever stood still.
func (a *actor) hasStalled() bool {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	return a.met[Stall]
}

// stalledAt reports whether the process stands still until the request's reply.
func (a *actor) stalledAt(r *request) bool {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	return r.stalled
}

func (a *actor) event() events.APIGatewayV2HTTPRequest {
	e := events.APIGatewayV2HTTPRequest{
		RouteKey: "POST /payments", RawPath: "/payments", Body: `{"amount":"` + a.order.Payload + `"}`,
		Headers: map[string]string{"idempotency-key": a.order.Key, "content-type": "application/json"},
	}
	e.RequestContext.HTTP.Method = http.MethodPost
	if a.saysRepeated() {
		e.Headers["idempotency-attempt"] = "2"
	}
	switch a.order.Unguarded {
	case noKey:
		delete(e.Headers, "idempotency-key")
	case byMethod:
		e.RequestContext.HTTP.Method, e.RouteKey, e.Headers["idempotency-key"] = http.MethodPut, "PUT /payments", "k0"
	}
	e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: map[string]string{"iss": "https://issuer.example", "sub": a.order.Owner}},
	}
	return e
}

type requestKey struct{}

// requestContext returns the context of the invocation that ctx was derived from. Mutations use
// it.
func requestContext(ctx context.Context) context.Context {
	if c, ok := ctx.Value(requestKey{}).(context.Context); ok {
		return c
	}
	return ctx
}
