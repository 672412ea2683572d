package lambdaidem_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/internal/elapsed/elapsedtest"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// caching switches the cache on with the given limits.
func caching(c lambdaidem.CacheOptions) func(*lambdaidem.Options) {
	return func(o *lambdaidem.Options) { o.Cache = c }
}

var roomy = caching(lambdaidem.CacheOptions{Entries: 100})

// beside returns another process on the same store. The two share no memory.
func (r *rig) beside(optFns ...func(*lambdaidem.Options)) *rig {
	other := newRig(nil, optFns...)
	other.store.Store = r.store.Store
	return other
}

// sendCounting sends a request, and also returns the number of store calls that it needed.
func (r *rig) sendCounting(t testing.TB, in request) (response, int) {
	t.Helper()
	before := len(r.store.allCalls())
	out := r.send(t, in)
	return out, len(r.store.allCalls()) - before
}

// wantFromMemory sends a request and checks that it is answered without the store.
func (r *rig) wantFromMemory(t testing.TB, in request) response {
	t.Helper()
	out, calls := r.sendCounting(t, in)
	if calls != 0 || !replayed(out) {
		t.Errorf("the store was asked %d times for %+v; want a replay from memory", calls, out)
	}
	return out
}

// wantFromStore sends a request and checks that it is answered with the help of the store.
func (r *rig) wantFromStore(t testing.TB, in request) response {
	t.Helper()
	out, calls := r.sendCounting(t, in)
	if calls == 0 || !replayed(out) {
		t.Errorf("the store was asked %d times for %+v; want a replay from the store", calls, out)
	}
	return out
}

func TestR4_OffByDefault(t *testing.T) {
	r := newRig(nil)
	r.send(t, first())
	for range 3 {
		r.wantFromStore(t, first())
	}
	for _, e := range r.seen.all() {
		if e.Cached {
			t.Errorf("an event says that it is from memory: %+v", e)
		}
	}
}

// The process's own completion fills the cache, and so does a replay from the store.
func TestR4_AReplayNeedsNoRoundTrip(t *testing.T) {
	own := newRig(nil, roomy)
	answer := own.send(t, first())
	wantReplay(t, own.wantFromMemory(t, first()), answer)

	other := own.beside(roomy)
	wantReplay(t, other.wantFromStore(t, first()), answer)
	wantReplay(t, other.wantFromMemory(t, first()), answer)

	own.store.failAlways(acquire, refused(lambdaidem.ReasonUnreachable))
	wantReplay(t, own.wantFromMemory(t, first()), answer)
	own.wantRuns(t, 1)
	other.wantRuns(t, 0)
	own.wantEvents(t, lambdaidem.EventNew, lambdaidem.EventReplayed, lambdaidem.EventReplayed)
	if e := own.seen.last(t); !e.Cached || e.Attempt != 1 || e.RecordID == "" || e.Scope == "" || e.Key == "" {
		t.Errorf("the event is %+v", e)
	}
	if seen := other.seen.all(); len(seen) != 2 || seen[0].Cached || !seen[1].Cached {
		t.Errorf("the other process told %+v", seen)
	}
}

// A duplicate that waited has asked the store, and the cache keeps its answer.
func TestR4_FilledAfterAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := newRig(slow(time.Second, http.StatusCreated))
		waiting := slow.beside(roomy, func(o *lambdaidem.Options) { o.Wait = 10 * time.Second })
		var done sync.WaitGroup
		done.Go(func() { slow.send(t, first()) })
		synctest.Wait()
		waiting.wantFromStore(t, first())
		waiting.wantFromMemory(t, first())
		done.Wait()
	})
}

// The cache keeps only completed records, not leases, releases or refusals.
func TestR4_OnlyFinishedRecords(t *testing.T) {
	status := http.StatusInternalServerError
	r := newRig(func(context.Context, request) (response, error) { return response{StatusCode: status}, nil }, roomy)
	r.send(t, first())
	status = http.StatusCreated
	if out := r.send(t, first()); out.StatusCode != http.StatusCreated || replayed(out) {
		t.Errorf("after a release the answer is %+v", out)
	}
	r.wantFromMemory(t, first())
	if e := r.seen.last(t); e.Attempt != 2 {
		t.Errorf("the replay is of attempt %d; want 2", e.Attempt)
	}

	synctest.Test(t, func(t *testing.T) {
		dies := newRig(nil, roomy, hold)
		dead(t, dies)
		for range 2 {
			out, calls := dies.sendCounting(t, first())
			if wantProblem(t, out, http.StatusConflict, lambdaidem.ErrAttemptAbandoned); calls == 0 {
				t.Error("a held record was refused from memory")
			}
		}

		failing := newRig(nil, roomy)
		failing.store.failAlways(complete, refused(lambdaidem.ReasonThrottled))
		wantProblem(t, failing.send(t, first()), http.StatusServiceUnavailable, lambdaidem.ErrOutcomeUnknown)
		if out, calls := failing.sendCounting(t, first()); calls == 0 || replayed(out) {
			t.Errorf("a completion that was not written was answered from memory: %+v", out)
		}
	})
}

// The fingerprint is compared for a cached record too.
func TestR4_AMismatchFromMemory(t *testing.T) {
	for status, want := range map[int]int{0: http.StatusUnprocessableEntity, http.StatusConflict: http.StatusConflict} {
		r := newRig(nil, roomy, func(o *lambdaidem.Options) { o.MismatchStatus = status })
		answer := r.send(t, first())
		out, calls := r.sendCounting(t, post("key-1", `{"amount":999}`))
		wantProblem(t, out, want, lambdaidem.ErrPayloadMismatch)
		if e := r.seen.last(t); calls != 0 || e.Kind != lambdaidem.EventMismatch || !e.Cached {
			t.Errorf("the store was asked %d times; the event is %+v", calls, e)
		}
		wantReplay(t, r.wantFromMemory(t, post("key-1", ` { "amount" : 100 } `)), answer)
		r.wantRuns(t, 1)
	}
}

// The cache gives an answer only to the same caller on the same route, tenant and namespace, even
// if another request has the same key.
func TestR4_NobodyElsesAnswer(t *testing.T) {
	as := func(in request, sub string) request {
		in.RequestContext.Authorizer = &authorizer{JWT: &jwtAuth{Claims: map[string]string{"iss": "i", "sub": sub}}}
		return in
	}
	r := newRig(func(_ context.Context, in request) (response, error) {
		return response{StatusCode: 200, Body: in.RequestContext.Authorizer.JWT.Claims["sub"] + in.RawPath + in.RequestContext.HTTP.Method}, nil
	}, roomy)
	route := as(first(), "alice")
	route.RouteKey, route.RawPath = "POST /refunds", "/refunds"
	patch := as(first(), "alice")
	patch.RouteKey, patch.RequestContext.HTTP.Method = "PATCH /payments", http.MethodPatch
	all := map[string]request{"alice/paymentsPOST": as(first(), "alice"), "bob/paymentsPOST": as(first(), "bob"),
		"alice/refundsPOST": route, "alice/paymentsPATCH": patch}
	for range 2 {
		for want, in := range all {
			if out := r.send(t, in); out.Body != want {
				t.Errorf("%s got the answer of %s", want, out.Body)
			}
		}
	}
	r.wantRuns(t, int64(len(all)))

	elsewhere := &rig{store: r.store, seen: r.seen, guard: r.guard.With(func(o *lambdaidem.Options) { o.Namespace = "another" })}
	elsewhere.handler = elsewhere.guarded(nil)
	if out := elsewhere.send(t, as(first(), "alice")); replayed(out) {
		t.Errorf("another namespace got %+v", out)
	}
}

// The entry that was used least recently is evicted.
func TestR4_BoundedInEntries(t *testing.T) {
	r := newRig(nil, caching(lambdaidem.CacheOptions{Entries: 2}))
	in := func(i int) request { return post(fmt.Sprint("key-", i), `{}`) }
	r.send(t, in(1))
	r.send(t, in(2))
	r.wantFromMemory(t, in(1))
	r.send(t, in(3)) // evicts 2
	r.wantFromMemory(t, in(1))
	r.wantFromMemory(t, in(3))
	r.wantFromStore(t, in(2)) // evicts 1
	r.wantFromMemory(t, in(3))
	r.wantFromMemory(t, in(2))
	r.wantFromStore(t, in(1))
}

func TestR4_BoundedInBytes(t *testing.T) {
	r := newRig(func(_ context.Context, in request) (response, error) {
		return response{StatusCode: 201, Body: strings.Repeat("x", len(in.Body))}, nil
	}, caching(lambdaidem.CacheOptions{Bytes: 10_000}))
	in := func(i, size int) request { return post(fmt.Sprint("key-", i), `"`+strings.Repeat("y", size-2)+`"`) }
	r.send(t, in(1, 4000))
	r.send(t, in(2, 3900))
	r.wantFromMemory(t, in(1, 4000))
	r.send(t, in(3, 20_000)) // too large by itself, so it isn't kept and evicts nothing
	r.wantFromStore(t, in(3, 20_000))
	r.wantFromMemory(t, in(2, 3900))
	r.wantFromMemory(t, in(1, 4000))
	r.send(t, in(4, 8000)) // evicts both
	r.wantFromMemory(t, in(4, 8000))
	r.wantFromStore(t, in(2, 3900))
	r.wantFromMemory(t, in(2, 3900))
	r.wantFromStore(t, in(4, 8000))
	other := r.beside(caching(lambdaidem.CacheOptions{Bytes: 10_000}))
	for range 5 { // several requests learn of one record at once; the cache keeps it once
		other.store.fail(acquire, after(func() { other.send(t, in(1, 4000)) }))
	}
	other.wantFromStore(t, in(1, 4000))
	other.wantFromMemory(t, in(1, 4000))
	for i := range 100 { // the size of evicted entries is subtracted
		r.send(t, in(10+i, 2500))
	}
	r.wantFromMemory(t, in(109, 2500))
	r.wantFromMemory(t, in(108, 2500))
	for i := range 100 { // the size of decoded answers counts as well
		r.send(t, in(200+i, 2000))
		r.wantFromMemory(t, in(200+i, 2000))
	}
	for _, i := range []int{299, 298, 297, 298, 299} {
		r.wantFromMemory(t, in(i, 2000))
	}
	r.send(t, in(300, 8000)) // evicts all
	r.wantFromMemory(t, in(300, 8000))
	r.wantFromStore(t, in(299, 2000))
}

// A record that is evicted between the lookup and the end of a replay no longer counts.
func TestR4_BytesStayTrue(t *testing.T) {
	in := func(i, size int) request { return post(fmt.Sprint("key-", i), `"`+strings.Repeat("y", size-2)+`"`) }
	var nested func()
	r := newRig(func(_ context.Context, in request) (response, error) {
		return response{StatusCode: 201, Body: strings.Repeat("x", len(in.Body))}, nil
	}, caching(lambdaidem.CacheOptions{Entries: 4, Bytes: 12_000}), func(o *lambdaidem.Options) {
		o.Observer = lambdaidem.ObserverFunc(func(context.Context, lambdaidem.Event) {
			if do := nested; do != nil {
				nested = nil
				do()
			}
		})
	})
	for i := range 20 {
		r.send(t, in(i, 1000))
		nested = func() {
			for other := range 4 {
				r.send(t, in(1000+4*i+other, 1000))
			}
		}
		r.send(t, in(i, 1000))
	}
	for i := range 4 { // 2.8 KB each, so all of them fit
		r.send(t, in(2000+i, 2000))
	}
	for i := range 4 {
		r.wantFromMemory(t, in(2000+i, 2000))
	}
}

// A cached answer that can't be decoded is unreadable, as one from the store is (X4).
func TestR4_ADamagedAnswer(t *testing.T) {
	r := newRig(status(500), roomy)
	r.store.Store = &completed{value: []byte("no JSON")}
	for range 3 {
		if out := r.send(t, first()); out.StatusCode != 500 || !strings.Contains(out.Body, "idempotency_answer_unreadable") {
			t.Errorf("the answer is %+v", out)
		}
	}
}

// Bytes limits the memory that the cache really uses. For small answers, most of that is the
// cache's own overhead per entry.
func TestR4_BytesAreTrue(t *testing.T) {
	const bound = 8 << 20
	for _, size := range []int{10, 1000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			var store completed
			headers := map[string]string{"Content-Type": "application/json", "X-Request-Id": strings.Repeat("i", 36)}
			store.value, _ = json.Marshal(map[string]any{"statusCode": 201, "headers": headers, "body": strings.Repeat("x", size)})
			g := lambdaidem.New(&store, func(o *lambdaidem.Options) {
				o.Namespace, o.Observer = "test", lambdaidem.Discard
				o.Cache = lambdaidem.CacheOptions{Entries: 1 << 20, Bytes: bound}
			})
			h := g.APIGatewayV2(status(500))
			before := heap()
			for i := range 40_000 { // two requests per key, so that each answer is decoded
				if out, err := h(t.Context(), post(fmt.Sprint("key-", i/2), "{}")); err != nil || !replayed(out) {
					t.Fatal(out, err)
				}
			}
			took := heap() - before
			t.Logf("%d bytes, %.0f %% of the bound", took, 100*float64(took)/bound)
			if took > bound*11/10 || took < bound/2 {
				t.Errorf("the cache takes %d bytes; its bound is %d", took, bound)
			}
			runtime.KeepAlive(g)
		})
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// completed is a store in which every record is completed.
type completed struct {
	lambdaidem.Store
	value []byte
}

func (s *completed) Acquire(_ context.Context, c lambdaidem.Claim) (lambdaidem.Record, error) {
	return lambdaidem.Record{ID: c.ID, State: lambdaidem.Completed, Token: "another", Attempt: 1, Fingerprint: c.Fingerprint, Scope: c.Scope,
		Expires: c.Now.Add(time.Hour), CompletedAt: c.Now,
		Result: lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, Value: bytes.Clone(s.value), At: c.Now, Expires: c.Now.Add(time.Hour)}}, nil
}

// The age of an answer counts from before the request to the store, so MaxAge limits how late a
// purge is noticed. Using an answer doesn't make it younger.
func TestR4_BoundedInAge(t *testing.T) {
	const maxAge = time.Minute
	clock := newTicker()
	r := newRig(nil, clock.option, caching(lambdaidem.CacheOptions{MaxAge: maxAge}))
	r.store.fail(complete, after(func() { clock.advance(20 * time.Second) }))
	r.send(t, first())
	for range 39 {
		clock.advance(time.Second)
		r.wantFromMemory(t, first())
	}
	clock.advance(time.Second)
	r.store.fail(acquire, after(func() { clock.advance(40 * time.Second) }))
	r.wantFromStore(t, first())
	clock.advance(20*time.Second - 1)
	r.wantFromMemory(t, first())
	clock.advance(1)
	r.wantFromStore(t, first())
	r.wantFromMemory(t, first())
}

// A purge is noticed after MaxAge at the latest.
func TestR4_APurgeIsNoticedWithinTheAge(t *testing.T) {
	clock := newTicker()
	r := newRig(nil, clock.option, caching(lambdaidem.CacheOptions{MaxAge: time.Minute}))
	r.send(t, first())
	r.store.Store = memstore.New() // all records are gone
	clock.advance(time.Minute - time.Millisecond)
	r.wantFromMemory(t, first())
	clock.advance(time.Millisecond)
	if out := r.send(t, first()); replayed(out) {
		t.Errorf("the purged record still replays: %+v", out)
	}
	r.wantRuns(t, 2)
}

// A cached record is used until it expires by any clock within MaxSkew.
func TestR4_ExpiredIsOver(t *testing.T) {
	clock := &ticker{now: time.Now().Truncate(time.Second)} // expiry is in whole seconds
	r := newRig(nil, clock.option, caching(lambdaidem.CacheOptions{MaxAge: 100 * time.Hour}), func(o *lambdaidem.Options) { o.TTL = time.Hour })
	r.send(t, first())
	clock.advance(time.Hour - 2*time.Second - time.Millisecond)
	r.wantFromMemory(t, first())
	clock.advance(time.Millisecond)
	r.wantFromStore(t, first())
	r.wantFromStore(t, first())
	clock.advance(2 * time.Second)
	if out := r.send(t, first()); replayed(out) {
		t.Errorf("the expired record still replays: %+v", out)
	}
	r.wantRuns(t, 2)
}

// A clock that jumps forward by MaxAge or more ends a cached answer. So does one that jumps back to
// before the answer was stored, because the answer's age is then unknown. After a smaller jump
// back, the answer lives longer by at most that jump.
func TestR4_ClockJumps(t *testing.T) {
	const maxAge = time.Minute
	begin := func(t *testing.T) (*rig, *ticker) {
		clock := &ticker{now: time.Now().Truncate(time.Millisecond)} // a completion's time is in milliseconds
		r := newRig(nil, clock.option, caching(lambdaidem.CacheOptions{MaxAge: maxAge}))
		r.send(t, first())
		clock.advance(30 * time.Second)
		r.wantFromMemory(t, first())
		return r, clock
	}
	for jump, kept := range map[time.Duration]bool{
		12 * time.Hour: false, 30 * time.Second: false, 29 * time.Second: true,
		-29 * time.Second: true, -31 * time.Second: false, -12 * time.Hour: false,
	} {
		t.Run(jump.String(), func(t *testing.T) {
			r, clock := begin(t)
			clock.advance(jump)
			if !kept {
				r.wantFromStore(t, first())
				return
			}
			r.wantFromMemory(t, first())
			clock.advance(maxAge - 30*time.Second - jump - 1)
			r.wantFromMemory(t, first())
			clock.advance(1)
			r.wantFromStore(t, first())
		})
	}
	t.Run("there and back", func(t *testing.T) { // an answer that was once too old is not used again
		r, clock := begin(t)
		r.store.failAlways(acquire, refused(lambdaidem.ReasonThrottled))
		clock.advance(24 * time.Hour)
		r.send(t, first())
		clock.advance(-24 * time.Hour)
		wantProblem(t, r.send(t, first()), http.StatusServiceUnavailable, lambdaidem.ErrStoreUnavailable)
	})
}

// Lambda freezes a process between invocations: its monotonic clock stops, and the wall clock goes
// on. Conversely, a wall clock that is set back doesn't make an answer younger than it is by the
// monotonic clock.
func TestR4_WallAndMonotonicClock(t *testing.T) {
	const maxAge = time.Minute
	for name, c := range map[string]struct{ wall, monotonic time.Duration }{
		"frozen":   {maxAge, time.Millisecond},
		"set back": {time.Second, maxAge},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			clock := func() time.Time { return now }
			filling := newRig(nil, func(o *lambdaidem.Options) { o.Clock = clock })
			filling.send(t, first())
			r := filling.beside(func(o *lambdaidem.Options) { o.Clock = clock }, caching(lambdaidem.CacheOptions{MaxAge: maxAge}))
			r.wantFromStore(t, first())
			now = elapsedtest.Move(now, c.wall-time.Second, c.monotonic-time.Second)
			r.wantFromMemory(t, first())
			now = elapsedtest.Move(now, time.Second, time.Second)
			r.wantFromStore(t, first())
		})
	}
}

// Guards made from one New share a cache unless their limits differ. Guards of two New calls never
// do, not even on the same store.
func TestR4_WhoSharesACache(t *testing.T) {
	base := newRig(nil, roomy)
	derived := func(g *lambdaidem.Guard, optFns ...func(*lambdaidem.Options)) *rig {
		r := &rig{store: base.store, seen: base.seen, guard: g.With(optFns...)}
		r.handler = r.guarded(nil)
		return r
	}
	sibling := derived(base.guard, func(o *lambdaidem.Options) { o.TTL = time.Hour })
	same := derived(base.guard, roomy)
	off := derived(base.guard, caching(lambdaidem.CacheOptions{}))
	on := derived(off.guard, roomy)
	other := derived(base.guard, func(o *lambdaidem.Options) { o.Cache.Entries++ })
	base.send(t, first())
	sibling.wantFromMemory(t, first())
	same.wantFromMemory(t, first())
	off.wantFromStore(t, first())
	off.wantFromStore(t, first())
	on.wantFromStore(t, first())
	on.wantFromMemory(t, first())
	other.wantFromStore(t, first())
	other.wantFromMemory(t, first())
	base.beside(roomy).wantFromStore(t, first())

	elsewhere := newRig(nil, roomy) // another store
	if out := elsewhere.send(t, first()); replayed(out) {
		t.Errorf("another store's answer replays: %+v", out)
	}
}

// A request that runs unguarded neither uses the cache nor fills it.
func TestR4_UnguardedIsUnguarded(t *testing.T) {
	skip := false
	r := newRig(nil, roomy, func(o *lambdaidem.Options) { o.Skip = func(*lambdaidem.Request) bool { return skip } })
	r.send(t, first())
	skip = true
	if out := r.send(t, first()); replayed(out) {
		t.Errorf("a skipped request got %+v", out)
	}
	t.Setenv(lambdaidem.SwitchOff, "true")
	off := r.beside(roomy)
	for range 2 {
		if out := off.send(t, first()); replayed(out) {
			t.Errorf("a guard that is off answers %+v", out)
		}
	}
}

// The cache also remembers that an answer is lost.
func TestR4_ALostAnswerIsRemembered(t *testing.T) {
	r := newRig(nil, roomy)
	r.store.fail(complete, refused(lambdaidem.ReasonTooLarge))
	r.send(t, first())
	out, calls := r.sendCounting(t, first())
	wantProblem(t, out, http.StatusInternalServerError, lambdaidem.ErrAnswerUnavailable)
	if calls != 0 {
		t.Errorf("the store was asked %d times", calls)
	}
	r.wantRuns(t, 1)
}

// The reply to a transaction has neither a fingerprint nor an attempt number. The cache gets
// both from the attempt, so an event of a replay from memory names the attempt, and a
// request with another payload is refused.
func TestR4_TheAnswerOfATransactionIsRememberedWithItsAttempt(t *testing.T) {
	r, _ := withLedger(enlisting(created), roomy)
	r.store.fail(commit, func(_ context.Context, _ string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
		rec, err := call()
		rec.Attempt, rec.Fingerprint = 0, ""
		return rec, err
	})
	r.send(t, first())
	r.wantFromMemory(t, first())
	if e := r.seen.last(t); e.Kind != lambdaidem.EventReplayed || e.Attempt != 1 {
		t.Errorf("the event is %s of attempt %d", e.Kind, e.Attempt)
	}
	wantProblem(t, r.send(t, post("key-1", `{"amount":7}`)), http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
}

// After a deployment that changed the fingerprint options, nobody knows whether a request repeats the
// one that another service may have carried out. If an attempt without a lease completes the record,
// the cache must not be surer than the table: a client that is told to use a new key may pay twice.
func TestR4_AnUnsureMismatchFromMemory(t *testing.T) {
	original, changed := post("key-1", `{"amount":100}`), post("key-1", `{"amount":90}`)
	status := http.StatusServiceUnavailable
	r, _ := withLedger(func(ctx context.Context, _ request) (response, error) {
		lambdaidem.DownstreamKey(ctx, "charge")
		return response{StatusCode: status}, nil
	})
	r.send(t, original)
	status = http.StatusCreated
	deployed := r.guard.With(optimistic, func(o *lambdaidem.Options) { o.FingerprintIgnore = []string{"/trace"} })
	caching := rig{guard: deployed.With(roomy), store: r.store, seen: r.seen}
	caching.handler = caching.guarded(enlisting(created))
	r.store.failAlways(commit, func(_ context.Context, _ string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
		rec, err := call()
		rec.Attempt, rec.Fingerprint = 0, "" // the reply to a transaction has neither
		return rec, err
	})
	if out := caching.send(t, changed); out.StatusCode != http.StatusCreated {
		t.Fatalf("after the deployment the answer is %+v", out)
	}
	fromMemory := caching.send(t, original)
	r.handler = deployed.APIGatewayV2(enlisting(created))
	if out := r.send(t, original); fromMemory.Body != out.Body || !strings.Contains(out.Body, "can't tell") {
		t.Errorf("from memory the answer is %s, and from the table %s", fromMemory.Body, out.Body)
	}
}

// A permanent failure replays from the cache as it does from the store.
func TestR4_AFailureFromMemory(t *testing.T) {
	store := newFaulty()
	g := lambdaidem.New(store, roomy, func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard })
	for i := range 3 {
		_, err := lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "charge", Key: "k"}, func(context.Context) (int, error) {
			return 0, lambdaidem.Reject(402, "insufficient_funds", "No.")
		})
		if !errors.Is(err, lambdaidem.Code("insufficient_funds")) {
			t.Errorf("call %d returned %v", i, err)
		}
	}
	if calls := store.allCalls(); len(calls) != 2 {
		t.Errorf("the store was asked for %v", calls)
	}
}

// The cache keeps a large answer itself, never a reference to where it is stored.
func TestR4_AnswersThatLieApart(t *testing.T) {
	r := newRig(nil, roomy)
	r.store.Store = apartStore{r.store.Store}
	answer := r.send(t, first())
	wantReplay(t, r.wantFromMemory(t, first()), answer)

	other := newRig(nil, roomy) // it can't load the answer, and must not remember that there is none
	other.store.Store = r.store.Store
	for range 2 {
		if out, calls := other.sendCounting(t, first()); calls == 0 || replayed(out) {
			t.Errorf("the store was asked %d times for %+v", calls, out)
		}
	}
}

// If a store returns a wrong record, or it is unknown whether the completion happened, the cache
// keeps nothing.
func TestR4_ACompletionThatIsNone(t *testing.T) {
	r := newRig(nil, roomy)
	r.store.fail(complete, func(_ context.Context, _ string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
		rec, err := call()
		rec.State, rec.LeaseEnd = lambdaidem.InProgress, rec.LeaseEnd.Add(time.Hour)
		return rec, err
	})
	r.send(t, first())
	r.wantFromStore(t, first())

	lost := newRig(nil, roomy) // the answer was stored separately before the store reported that it can't be kept
	lost.store.Store = apartStore{lost.store.Store}
	lost.store.fail(complete, replyLost, refused(lambdaidem.ReasonTooLarge))
	lost.send(t, first())
	if out, calls := lost.sendCounting(t, first()); calls == 0 {
		t.Errorf("an answer that is not known was remembered: %+v", out)
	}
}

// apartStore is a store that reports of every answer that it is stored separately.
type apartStore struct{ lambdaidem.Store }

func (s apartStore) Acquire(ctx context.Context, c lambdaidem.Claim) (lambdaidem.Record, error) {
	rec, err := s.Store.Acquire(ctx, c)
	if rec.State == lambdaidem.Completed {
		rec.Result.Value, rec.Result.Apart = nil, "elsewhere"
	}
	return rec, err
}

func (s apartStore) Complete(ctx context.Context, l lambdaidem.Lease, r lambdaidem.Result) (lambdaidem.Record, error) {
	rec, err := s.Store.Complete(ctx, l, r)
	rec.Result.Value, rec.Result.Apart = nil, "elsewhere"
	return rec, err
}

// Nobody can change what the cache keeps: no hook, no caller, and no store that reuses its memory.
func TestR4_ValuesAreNobodyElses(t *testing.T) {
	r := newRig(func(context.Context, request) (response, error) {
		return response{StatusCode: 201, Headers: map[string]string{"X-A": "a", "X-C": "c"}, Cookies: []string{"b=c"}, Body: "body"}, nil
	}, roomy, func(o *lambdaidem.Options) {
		o.OnReplay = func(_ context.Context, _ *lambdaidem.Request, resp *lambdaidem.Response) {
			resp.Status, resp.Body = 299, "changed"
			resp.Header["X-A"][0] = "changed"
			for _, name := range []string{"X-A", "X-C"} {
				resp.Header[name] = append(resp.Header[name], "appended")
			}
			resp.Cookies[0] = "changed"
			resp.Set("X-B", "added")
		}
	})
	r.store.Store = reusing{r.store.Store}
	r.send(t, first())
	r.send(t, post("key-2", "{}"))
	r.wantFromMemory(t, post("key-2", "{}"))
	var seen []string
	for range 3 {
		out := r.wantFromMemory(t, first())
		seen = append(seen, fmt.Sprintf("%+v", out))
		if out.Headers["X-A"] != "changed, appended" || out.Headers["X-C"] != "c, appended" {
			t.Errorf("the hook made %v of the headers", out.Headers)
		}
		out.Headers["X-A"] = "changed again"
	}
	plain := &rig{store: r.store, seen: r.seen, guard: r.guard.With(func(o *lambdaidem.Options) { o.OnReplay = nil })}
	plain.handler = plain.guarded(nil)
	if out := plain.wantFromMemory(t, first()); out.StatusCode != 201 || out.Body != "body" || out.Headers["X-A"] != "a" || out.Cookies[0] != "b=c" || out.Headers["X-B"] != "" {
		t.Errorf("what is remembered became %+v; the hook had made %v of it", out, seen)
	}

	g := lambdaidem.New(reusing{memstore.New()}, roomy, func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard })
	for range 3 {
		raw, err := lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "o", Key: "k"}, func(context.Context) (json.RawMessage, error) {
			return json.RawMessage(`{"a":1}`), nil
		})
		if err != nil || string(raw) != `{"a":1}` {
			t.Fatalf("the value is %s, %v", raw, err)
		}
		copy(raw, "changed")
		if _, err := lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "o", Key: "another"}, func(context.Context) (int, error) { return 1, nil }); err != nil {
			t.Fatal(err)
		}
	}
}

// The same holds for answers with more than headers: a hook that removes a header from both header
// maps of a REST API or from values added to an outer handler's, and an outer handler that changes
// an answer's values.
func TestR4_NoPartOfAnAnswerIsShared(t *testing.T) {
	hook := func(o *lambdaidem.Options) {
		o.OnReplay = func(_ context.Context, _ *lambdaidem.Request, resp *lambdaidem.Response) { resp.Del("X-A") }
	}
	plain := func(o *lambdaidem.Options) { o.OnReplay = nil }
	base := lambdaidem.New(memstore.New(), quiet, roomy, anonymous)

	rest := func(o func(*lambdaidem.Options)) string {
		out, err := base.With(o).APIGateway(func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
			return events.APIGatewayProxyResponse{StatusCode: 200, Headers: map[string]string{"X-A": "1"}, MultiValueHeaders: map[string][]string{"x-a": {"2", "3"}}}, nil
		})(t.Context(), events.APIGatewayProxyRequest{HTTPMethod: "POST", Resource: "/a", Path: "/a", Headers: map[string]string{"idempotency-key": "k"}})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(out.Headers["X-A"], out.MultiValueHeaders["x-a"])
	}
	web := func(o func(*lambdaidem.Options)) string {
		inner := base.With(o).Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Add("X-A", "inner")
			w.Header().Add("X-B", "inner")
			w.WriteHeader(201)
			w.Header().Set(http.TrailerPrefix+"X-T", "trailer")
		}))
		var got string
		serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header()["X-A"], w.Header()["X-B"] = []string{"outer"}, []string{"outer"}
			inner.ServeHTTP(w, r)
			got = fmt.Sprint(w.Header()["X-A"], w.Header()["X-B"], w.Header()[http.TrailerPrefix+"X-T"])
			for _, values := range w.Header() { // changes after the answer must reach nobody
				for i := range values {
					values[i] = "late"
				}
			}
		}), posted(t, "/web"))
		return got
	}
	for name, call := range map[string]func(func(*lambdaidem.Options)) string{"REST": rest, "net/http": web} {
		t.Run(name, func(t *testing.T) {
			first := call(plain)
			for range 3 {
				call(hook)
			}
			if got := call(plain); got != first {
				t.Errorf("a replay from memory has %s; the first answer had %s", got, first)
			}
		})
	}
}

// reusing is a store that overwrites the bytes it returned at the next call.
type reusing struct{ lambdaidem.Store }

var reused struct {
	sync.Mutex
	last []byte
}

func (s reusing) overwrite(rec lambdaidem.Record) {
	reused.Lock()
	defer reused.Unlock()
	for i := range reused.last {
		reused.last[i] = '!'
	}
	reused.last = rec.Result.Value
}

func (s reusing) Acquire(ctx context.Context, c lambdaidem.Claim) (lambdaidem.Record, error) {
	rec, err := s.Store.Acquire(ctx, c)
	s.overwrite(rec)
	return rec, err
}

func (s reusing) Complete(ctx context.Context, l lambdaidem.Lease, r lambdaidem.Result) (lambdaidem.Record, error) {
	rec, err := s.Store.Complete(ctx, l, r)
	s.overwrite(rec)
	return rec, err
}

// One cache serves many calls at once, while it fills, evicts and ages, and while records expire.
// The test is for the race detector, and checks that every answer belongs to its key. The lease
// outlasts the test: a goroutine that waits for a processor in the middle of a claim must not find
// its lease over because the others moved the clock.
func TestR4_SafeForConcurrentUse(t *testing.T) {
	clock := newTicker()
	r := newRig(func(_ context.Context, in request) (response, error) {
		return response{StatusCode: 201, Headers: map[string]string{"X-A": "a"}, Body: in.Headers["idempotency-key"]}, nil
	}, clock.option, caching(lambdaidem.CacheOptions{Entries: 3, Bytes: 10_000, MaxAge: 10 * time.Second}), func(o *lambdaidem.Options) {
		o.Observer, o.TTL, o.LeaseDuration = lambdaidem.Discard, lambdaidem.MinTTL, 10*time.Hour
		o.OnReplay = func(_ context.Context, _ *lambdaidem.Request, resp *lambdaidem.Response) {
			resp.Header["X-A"][0] += "b"
		}
	})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 300 {
				key := fmt.Sprint("key-", (i+n)%5)
				out, err := r.handler(t.Context(), post(key, "{}"))
				switch {
				case err != nil:
					t.Error(err)
				case out.StatusCode == http.StatusConflict: // another is in progress
				case out.Body != key || replayed(out) && out.Headers["X-A"] != "ab":
					t.Errorf("%s got %+v", key, out)
				}
				if n%10 == 0 {
					clock.advance(10 * time.Second) // 40 minutes in all
				}
			}
		})
	}
	all.Wait()
}

// A replay from the cache equals one from the store, for answers of every form.
func TestR4_AReplayFromMemoryIsTheSame(t *testing.T) {
	for name, answer := range map[string]response{
		"empty":   {StatusCode: 204},
		"binary":  {StatusCode: 200, Body: "//4A", IsBase64Encoded: true},
		"no text": {StatusCode: 200, Body: "\xff\xfe"},
		"cookies": {StatusCode: 201, Headers: map[string]string{"x-a": "1, 2"}, Cookies: []string{"a=b", "c=d"}, Body: "é"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(func(context.Context, request) (response, error) { return answer, nil }, roomy)
			got := r.send(t, first())
			other := r.beside(roomy)
			wantReplay(t, r.wantFromMemory(t, first()), got)
			wantReplay(t, other.wantFromStore(t, first()), got)
			wantReplay(t, other.wantFromMemory(t, first()), got)
		})
	}
}

// A nil list of values is null in the first answer, and also in a replay from the cache.
func TestR1_ANilListOfValuesFromMemory(t *testing.T) {
	g := lambdaidem.New(memstore.New(), caching(lambdaidem.CacheOptions{Entries: 10}))
	h := g.APIGateway(func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		return events.APIGatewayProxyResponse{StatusCode: 200, MultiValueHeaders: map[string][]string{"X-A": nil}}, nil
	})
	for i := range 3 {
		out, err := h(t.Context(), events.APIGatewayProxyRequest{HTTPMethod: "POST", Path: "/p", Resource: "/p", Headers: map[string]string{"Idempotency-Key": "k"}})
		if values, there := out.MultiValueHeaders["X-A"]; err != nil || !there || values != nil {
			t.Errorf("answer %d: %#v, %v", i+1, out, err)
		}
	}
}
