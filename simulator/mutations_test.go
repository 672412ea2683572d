//go:build !race

// This file is left out under the race detector, which sees the same code in TestSimulate.

package simulator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// rewrite returns a Mutation.Request that replaces a part of the condition of one kind of write.
// The new part must use the same names and values, because DynamoDB refuses a request with unused
// ones. It panics if the condition lacks the old part.
func rewrite(what, old, with string) func(string, []byte) []byte {
	return func(op string, body []byte) []byte {
		if describe(op, body) != what {
			return body
		}
		var doc map[string]json.RawMessage
		var condition string
		if err := errors.Join(json.Unmarshal(body, &doc), json.Unmarshal(doc["ConditionExpression"], &condition)); err != nil {
			panic(err)
		}
		if !strings.Contains(condition, old) {
			panic("simulator: the condition of " + what + " has no " + old + ": " + condition)
		}
		text, err := json.Marshal(strings.ReplaceAll(condition, old, with))
		if err != nil {
			panic(err)
		}
		doc["ConditionExpression"] = text
		if body, err = json.Marshal(doc); err != nil {
			panic(err)
		}
		return body
	}
}

// inBody returns a Mutation.Request that replaces a text in the requests that describe calls what.
func inBody(what, old, with string) func(string, []byte) []byte {
	return func(op string, body []byte) []byte {
		if describe(op, body) != what {
			return body
		}
		return bytes.ReplaceAll(body, []byte(old), []byte(with))
	}
}

func both(fs ...func(string, []byte) []byte) func(string, []byte) []byte {
	return func(op string, body []byte) []byte {
		for _, f := range fs {
			body = f(op, body)
		}
		return body
	}
}

// always returns a condition that is always true. It uses a name and a value, because DynamoDB
// refuses a request with unused ones.
func always(name, value string) string {
	return "(" + name + " = " + value + " OR NOT " + name + " = " + value + ")"
}

// wrapped is a store with some methods replaced.
type wrapped struct {
	lambdaidem.Store
	acquire  func(context.Context, lambdaidem.Claim) (lambdaidem.Record, error)
	complete func(context.Context, lambdaidem.Lease, lambdaidem.Result) (lambdaidem.Record, error)
	release  func(context.Context, lambdaidem.Lease, time.Time) (lambdaidem.Record, error)
	get      func(context.Context, string, time.Time) (lambdaidem.Record, error)
}

func (w wrapped) Acquire(ctx context.Context, c lambdaidem.Claim) (lambdaidem.Record, error) {
	if w.acquire != nil {
		return w.acquire(ctx, c)
	}
	return w.Store.Acquire(ctx, c)
}

func (w wrapped) Complete(ctx context.Context, l lambdaidem.Lease, r lambdaidem.Result) (lambdaidem.Record, error) {
	if w.complete != nil {
		return w.complete(ctx, l, r)
	}
	return w.Store.Complete(ctx, l, r)
}

func (w wrapped) Release(ctx context.Context, l lambdaidem.Lease, now time.Time) (lambdaidem.Record, error) {
	if w.release != nil {
		return w.release(ctx, l, now)
	}
	return w.Store.Release(ctx, l, now)
}

func (w wrapped) Get(ctx context.Context, id string, now time.Time) (lambdaidem.Record, error) {
	if w.get != nil {
		return w.get(ctx, id, now)
	}
	return w.Store.Get(ctx, id, now)
}

// Begin begins a transaction as the store does.
func (w wrapped) Begin(random io.Reader) lambdaidem.Tx {
	return w.Store.(lambdaidem.Transactor).Begin(random)
}

// SaveSteps stores steps as the store does.
func (w wrapped) SaveSteps(ctx context.Context, l lambdaidem.Lease, steps lambdaidem.Steps, now time.Time) (lambdaidem.Record, error) {
	return w.Store.(lambdaidem.StepStore).SaveSteps(ctx, l, steps, now)
}

// Load loads an answer as the store does.
func (w wrapped) Load(ctx context.Context, rec lambdaidem.Record) (lambdaidem.Result, error) {
	return w.Store.(lambdaidem.Loader).Load(ctx, rec)
}

// claiming returns a Mutation.Store that changes each claim. The guard doesn't notice a changed end
// of the lease.
func claiming(change func(*lambdaidem.Claim, *actor)) func(lambdaidem.Store, *actor) lambdaidem.Store {
	return func(s lambdaidem.Store, a *actor) lambdaidem.Store {
		return wrapped{Store: s, acquire: func(ctx context.Context, c lambdaidem.Claim) (lambdaidem.Record, error) {
			meant := c.LeaseEnd
			change(&c, a)
			rec, err := s.Acquire(ctx, c)
			if rec.Token == c.Token {
				rec.LeaseEnd = meant
			}
			return rec, err
		}}
	}
}

// erring returns a Mutation.Store that changes the errors of Acquire.
func erring(change func(*lambdaidem.StoreError)) func(lambdaidem.Store, *actor) lambdaidem.Store {
	return func(s lambdaidem.Store, _ *actor) lambdaidem.Store {
		return wrapped{Store: s, acquire: func(ctx context.Context, c lambdaidem.Claim) (lambdaidem.Record, error) {
			rec, err := s.Acquire(ctx, c)
			if e := (*lambdaidem.StoreError)(nil); errors.As(err, &e) {
				changed := *e
				change(&changed)
				err = &changed
			}
			return rec, err
		}}
	}
}

const (
	token    = "#token = :token"
	seenTok  = "#token = :seen_token"
	seenSt   = "#status = :seen_state"
	seenEnd  = "#lease_end = :seen_end"
	notDone  = "NOT #status = :completed"
	takeOver = "take over"
)

// mistake is a mutation that the simulator must find. At least one of the checks must find it.
type mistake struct {
	Mutation
	checks []Check
}

// mutations are mistakes with locks, answers and options. The other files mutations_*_test.go have
// the rest.
var mutations = []mistake{
	{Mutation{Name: "no fencing on completion", Request: rewrite("complete", token, always("#token", ":token"))}, []Check{CheckFenced}},
	{Mutation{Name: "no fencing on release", Request: rewrite("release", token, always("#token", ":token"))}, []Check{CheckFenced}},
	{Mutation{Name: "takeover by token only", Request: both(rewrite(takeOver, seenSt, always("#status", ":seen_state")), rewrite(takeOver, seenEnd, always("#lease_end", ":seen_end")), rewrite(takeOver, notDone, always("#status", ":completed")))}, []Check{CheckCompletedNeverChanges}},
	{Mutation{Name: "takeover by state only", Request: both(rewrite(takeOver, seenTok, always("#token", ":seen_token")), rewrite(takeOver, seenEnd, always("#lease_end", ":seen_end")))}, []Check{CheckAttemptRaised, CheckLeaseBeforeLock}},
	{Mutation{Name: "takeover by lease end only", Request: both(rewrite(takeOver, seenTok, always("#token", ":seen_token")), rewrite(takeOver, seenSt, always("#status", ":seen_state")), rewrite(takeOver, notDone, always("#status", ":completed")))}, []Check{CheckCompletedNeverChanges}},
	{Mutation{Name: "release after a lost completion", Store: func(s lambdaidem.Store, a *actor) lambdaidem.Store {
		return wrapped{Store: s, complete: func(ctx context.Context, l lambdaidem.Lease, r lambdaidem.Result) (lambdaidem.Record, error) {
			rec, err := s.Complete(ctx, l, r)
			if err != nil && !errors.Is(err, lambdaidem.ErrLeaseLost) {
				return s.Release(ctx, l, a.clock())
			}
			return rec, err
		}}
	}}, []Check{CheckStoredEndings}},
	{Mutation{Name: "lease compared in seconds against milliseconds", Store: inSeconds}, []Check{CheckLeaseBeforeLock, CheckOneAtATime}},
	{Mutation{Name: "lease ending before the deadline", Store: claiming(func(c *lambdaidem.Claim, a *actor) {
		c.LeaseEnd = c.LeaseEnd.Add(-a.w.plan.maxSkew - time.Second)
	})}, []Check{CheckOneAtATime}},
	{Mutation{Name: "skew margin left out", Store: claiming(func(c *lambdaidem.Claim, a *actor) {
		c.LeaseEnd = c.LeaseEnd.Add(-a.w.plan.maxSkew)
	})}, []Check{CheckLeaseOutlives}},
	{Mutation{Name: "own token not recognised", Reply: strangeToken}, []Check{CheckRecognised}},
	{Mutation{
		Name:    "expired record overwritten while its lease lives",
		Request: rewrite("acquire", "NOT #status = :in_progress OR", "#status = :in_progress OR NOT #status = :in_progress OR"),
		Store:   claiming(func(c *lambdaidem.Claim, _ *actor) { c.Expires = c.Now.Truncate(time.Second) }),
	}, []Check{CheckLeaseBeforeLock, CheckOneAtATime}},
	{Mutation{Name: "TTL not filtered on read", Store: func(s lambdaidem.Store, _ *actor) lambdaidem.Store {
		return wrapped{
			Store: s,
			acquire: func(ctx context.Context, c lambdaidem.Claim) (lambdaidem.Record, error) {
				c.Now = c.Now.Add(-time.Hour)
				return s.Acquire(ctx, c)
			},
			get: func(ctx context.Context, id string, now time.Time) (lambdaidem.Record, error) {
				return s.Get(ctx, id, now.Add(-time.Hour))
			},
		}
	}}, []Check{CheckExpired}},
	{Mutation{Name: "last error taken for the verdict of all wire attempts", Store: erring(func(e *lambdaidem.StoreError) {
		e.NotApplied = e.NotApplied || e.Reason == lambdaidem.ReasonThrottled || e.Reason == lambdaidem.ReasonConflict
	})}, []Check{CheckUnknownReleased, CheckRecognised}},
	{Mutation{Name: "no release after an unknown acquire", Store: func(s lambdaidem.Store, _ *actor) lambdaidem.Store {
		unknown := map[string]bool{}
		return wrapped{
			Store: s,
			acquire: func(ctx context.Context, c lambdaidem.Claim) (lambdaidem.Record, error) {
				rec, err := s.Acquire(ctx, c)
				unknown[c.Token] = err != nil
				return rec, err
			},
			release: func(ctx context.Context, l lambdaidem.Lease, now time.Time) (lambdaidem.Record, error) {
				if unknown[l.Token] {
					return lambdaidem.Record{}, lambdaidem.ErrLeaseLost
				}
				return s.Release(ctx, l, now)
			},
		}
	}}, []Check{CheckUnknownReleased}},
	{Mutation{Name: "5xx stored", Options: func(o *lambdaidem.Options) {
		o.Outcome = func(r *lambdaidem.Response) lambdaidem.Outcome {
			if r.Status >= 500 {
				return lambdaidem.OutcomeFailed
			}
			return lambdaidem.DefaultOutcome(r)
		}
	}}, []Check{CheckStoredEndings}},
	{Mutation{Name: "the reader's policy alone decides", Store: func(s lambdaidem.Store, _ *actor) lambdaidem.Store {
		rerun := func(rec lambdaidem.Record, err error) (lambdaidem.Record, error) {
			if rec.State == lambdaidem.InProgress && rec.Expires.IsZero() {
				rec.Expires = rec.LeaseEnd.Add(time.Hour)
			}
			return rec, err
		}
		return wrapped{
			Store: s,
			acquire: func(ctx context.Context, c lambdaidem.Claim) (lambdaidem.Record, error) {
				return rerun(s.Acquire(ctx, c))
			},
			get: func(ctx context.Context, id string, now time.Time) (lambdaidem.Record, error) {
				return rerun(s.Get(ctx, id, now))
			},
		}
	}}, []Check{CheckHeld}},
	{Mutation{Name: "record that hold refused still expires", Request: inBody("hold", " REMOVE #expiration", "")}, []Check{CheckHeld}},
	{Mutation{Name: "hold keeps the lease end", Request: inBody("hold", "SET #lease_end = :lease_end", "SET #lease_end = if_not_exists(#lease_end, :lease_end)")}, []Check{CheckHeld}},
	{Mutation{Name: "unmarked error released under hold", Handler: func(h handler) handler {
		return func(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
			r, err := h(ctx, e)
			if err == errCard { //nolint:errorlint // the unmarked one alone
				err = lambdaidem.Retryable(err)
			}
			return r, err
		}
	}}, []Check{CheckStoredEndings, CheckHeld}},
	{Mutation{Name: "panic swallowed", Handler: func(h handler) handler {
		return func(ctx context.Context, e events.APIGatewayV2HTTPRequest) (r events.APIGatewayV2HTTPResponse, err error) {
			defer func() {
				if recover() != nil {
					r.StatusCode = 500
				}
			}()
			return h(ctx, e)
		}
	}}, []Check{CheckPanicGoesOn}},
	{Mutation{Name: "clean-up under the request's context", Store: func(s lambdaidem.Store, _ *actor) lambdaidem.Store {
		return wrapped{Store: s, release: func(ctx context.Context, l lambdaidem.Lease, now time.Time) (lambdaidem.Record, error) {
			return s.Release(requestContext(ctx), l, now)
		}}
	}}, []Check{CheckCleanUp}},
	{Mutation{Name: "wait mode sleeping past the deadline", Store: func(s lambdaidem.Store, a *actor) lambdaidem.Store {
		return wrapped{Store: s, get: func(ctx context.Context, id string, now time.Time) (lambdaidem.Record, error) {
			time.Sleep(a.w.plan.wait)
			return s.Get(ctx, id, now)
		}}
	}}, []Check{CheckInTime}},
	{Mutation{Name: "conflict treated as unavailable under fail open", Store: erring(func(e *lambdaidem.StoreError) {
		if e.Reason == lambdaidem.ReasonConflict {
			e.Reason = lambdaidem.ReasonUnknown
		}
	})}, []Check{CheckConflictIsBusy}},
}

// inSeconds reads the ends of leases as if seconds were milliseconds, so that every lease looks
// long over.
func inSeconds(s lambdaidem.Store, _ *actor) lambdaidem.Store {
	meant := map[string]time.Time{}
	misread := func(rec lambdaidem.Record, err error) (lambdaidem.Record, error) {
		meant[rec.Token] = rec.LeaseEnd
		rec.LeaseEnd = time.UnixMilli(rec.LeaseEnd.Unix())
		return rec, err
	}
	return wrapped{
		Store: s,
		acquire: func(ctx context.Context, c lambdaidem.Claim) (lambdaidem.Record, error) {
			if c.Over != nil {
				over := *c.Over
				over.LeaseEnd = meant[over.Token]
				c.Over = &over
			}
			rec, err := s.Acquire(ctx, c)
			if rec.Token == c.Token {
				return rec, err
			}
			return misread(rec, err)
		},
		get: func(ctx context.Context, id string, now time.Time) (lambdaidem.Record, error) {
			return misread(s.Get(ctx, id, now))
		},
	}
}

// strangeToken replaces the sender's own token in the reply to a refused acquire.
func strangeToken(op string, request []byte, status int, body []byte) []byte {
	if status == 200 || op != "PutItem" {
		return body
	}
	var put struct {
		Item map[string]map[string]string
	}
	if err := json.Unmarshal(request, &put); err != nil {
		return body
	}
	return bytes.ReplaceAll(body, []byte(put.Item["token"]["S"]), []byte("AAAAAAAAAAAAAAAAAAAAAA"))
}

// searchFrom has the seed at which TestMutations begins to search for a mistake that few seeds
// show: the first seed that showed the mistake when this was written. If the seed no longer shows
// the mistake, the search only takes longer, because it tries the other default seeds next. All
// other searches begin at seed 0.
var searchFrom = map[string]uint64{
	"TTL below the minimum":                              7568,
	"unconditional purge":                                4165,
	"transaction under any token":                        2732,
	"takeover by token only":                             951,
	"takeover by lease end only":                         951,
	"released record that forgets what binds it":         793,
	"no margin for the database's clock":                 309,
	"dead lease claimed without comparing what was seen": 266,
	"inner call that the guard does not recognize":       204,
	"failed open, committed alone":                       194,
	"held record claimed":                                167,
	"no fencing on completion":                           322,
	"unmarked error released under hold":                 127,
	"conflict taken for a failed condition":              120,
	"claim not withdrawn by a later invocation":          114,
}

// TestMutations tests the checks: each mistake is found within the default seeds, by a check for
// the rule that it breaks.
func TestMutations(t *testing.T) {
	limit := uint64(10_000)
	unknown := maps.Clone(searchFrom)
	for _, m := range slices.Concat(mutations, effectMutations, stepMutations, partMutations, operatorMutations, leaseIndexMutations, delayMutations, deploymentMutations, outageMutations, innerMutations, lookupMutations) {
		delete(unknown, m.Name)
		t.Run(m.Name, func(t *testing.T) {
			var (
				next  atomic.Uint64
				found atomic.Pointer[Report]
				other sync.Map
				wg    sync.WaitGroup
			)
			for range runtime.GOMAXPROCS(0) {
				wg.Go(func() {
					for found.Load() == nil {
						tried := next.Add(1) - 1
						if tried >= limit {
							return
						}
						seed := (searchFrom[m.Name] + tried) % limit
						r := runSeed(t, seed, &m.Mutation, false)
						for _, v := range r.Wrong {
							other.Store(v.Check, true)
							if slices.Contains(m.checks, v.Check) {
								found.Store(&r)
							}
						}
					}
				})
			}
			wg.Wait()
			r := found.Load()
			if r == nil {
				var others []Check
				other.Range(func(k, _ any) bool { others = append(others, k.(Check)); return true })
				t.Fatalf("it survives %d seeds; none of the checks %q found it (others did: %q)", limit, m.checks, others)
			}
			var by []Check
			for _, v := range r.Wrong {
				by = append(by, v.Check)
			}
			slices.Sort(by)
			t.Logf("caught by %q at seed %d, after %d seeds", slices.Compact(by), r.Seed, min(next.Load(), limit))
		})
	}
	for name := range unknown {
		t.Errorf("searchFrom names %q, which is no mistake", name)
	}
}
