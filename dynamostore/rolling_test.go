package dynamostore

import (
	"context"
	"encoding/base64"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// before is the store as it was before it knew large answers, steps and transactions. It has four
// methods, stores answers unchanged, and refuses any encoding. testdata/items has items that it
// wrote.
type before struct{ s *Store }

func (b before) Acquire(ctx context.Context, c lambdaidem.Claim) (lambdaidem.Record, error) {
	return b.refusing(b.s.Acquire(ctx, c))
}

func (b before) Complete(ctx context.Context, l lambdaidem.Lease, r lambdaidem.Result) (lambdaidem.Record, error) {
	return b.refusing(b.s.Complete(ctx, l, r))
}

func (b before) Release(ctx context.Context, l lambdaidem.Lease, now time.Time) (lambdaidem.Record, error) {
	return b.refusing(b.s.Release(ctx, l, now))
}

func (b before) Get(ctx context.Context, id string, now time.Time) (lambdaidem.Record, error) {
	return b.refusing(b.s.Get(ctx, id, now))
}

func (b before) refusing(rec lambdaidem.Record, err error) (lambdaidem.Record, error) {
	if rec.Result.Apart != nil || len(rec.Steps) > 0 {
		return lambdaidem.Record{}, &lambdaidem.StoreError{Op: opAcquire, Reason: lambdaidem.ReasonForeign, NotApplied: true, Err: errors.New("its encoding is unknown to this version")}
	}
	return rec, err
}

// Two versions of a function use the same table while one is rolled out or back. The second call
// gets what the record of the first call says, or an error. No handler runs twice, and no answer is
// misread.
func TestD4_RollingDeploys(t *testing.T) {
	type end = func(context.Context) (string, error)
	small := func(context.Context) (string, error) { return "small", nil }
	big := func(context.Context) (string, error) {
		return base64.StdEncoding.EncodeToString([]byte(noise(100_000))), nil
	}
	later := errors.New("later")
	released := func(context.Context) (string, error) { return "", later }
	died := func(context.Context) (string, error) { return "", lambdaidem.Uncertain(later) } // the lease stays, as after a crash
	withStep := func(end end) end {
		return func(ctx context.Context) (string, error) {
			if _, err := lambdaidem.Step(ctx, "card", func(context.Context) (int, error) { return 7, nil }); err != nil {
				return "", err
			}
			return end(ctx)
		}
	}
	for name, c := range map[string]struct {
		first, second string // "old" or "new"
		end           end    // of the first call
		runs          int    // of both calls together
		err           error  // of the second call; nil if it succeeds
	}{
		"an old answer replays":                      {"old", "new", small, 1, nil},
		"a large old answer replays":                 {"old", "new", big, 1, nil},
		"a small new answer replays":                 {"new", "old", small, 1, nil},
		"a large new answer is refused":              {"new", "old", big, 1, lambdaidem.ErrRecordForeign},
		"an old attempt died":                        {"old", "new", died, 2, nil},
		"a new attempt died":                         {"new", "old", died, 2, nil},
		"an old attempt gave up":                     {"old", "new", released, 2, nil},
		"a new attempt gave up":                      {"new", "old", released, 2, nil},
		"a new attempt died after a step":            {"new", "old", withStep(died), 1, lambdaidem.ErrRecordForeign},
		"a new attempt gave up after a step":         {"new", "old", withStep(released), 1, lambdaidem.ErrRecordForeign},
		"a new attempt with a step replays":          {"new", "old", withStep(small), 1, nil},
		"a new attempt died after a step, new again": {"new", "new", withStep(died), 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			client, table := freshTable(t)
			clock := time.Now()
			guards := map[string]*lambdaidem.Guard{}
			for version, store := range map[string]lambdaidem.Store{
				"new": New(client, table, patient),
				"old": before{New(client, table, patient, func(o *Options) { o.CompressFrom, o.MaxInline = math.MaxInt, 384<<10 })},
			} {
				guards[version] = lambdaidem.New(store, func(o *lambdaidem.Options) {
					o.Namespace, o.Observer, o.Clock = "shop", lambdaidem.Discard, func() time.Time { return clock }
				})
			}
			runs := 0
			do := func(version string, end end) (string, error) {
				return lambdaidem.Do(t.Context(), guards[version], lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (string, error) {
					runs++
					return end(ctx)
				})
			}
			first, err := do(c.first, c.end)
			if err != nil && !errors.Is(err, later) {
				t.Fatal(err)
			}
			clock = clock.Add(5 * time.Minute) // every lease has ended
			second, err := do(c.second, small)
			if !errors.Is(err, c.err) || c.err == nil && c.runs == 1 && second != first {
				t.Errorf("the second got %d bytes, %v; want the first one's %d bytes or %v", len(second), err, len(first), c.err)
			}
			if runs != c.runs {
				t.Errorf("%d runs; want %d", runs, c.runs)
			}
		})
	}
}

// An older version replays the answer of a record that a transaction completed.
func TestD4_OlderVersionReplaysATransaction(t *testing.T) {
	for name, opt := range map[string]func(*lambdaidem.Options){"lock": func(*lambdaidem.Options) {}, "optimistic": optimistic} {
		t.Run(name, func(t *testing.T) {
			b := openBank(t, opt)
			if _, err := b.do(t.Context(), "k", well); err != nil {
				t.Fatal(err)
			}
			old := lambdaidem.New(before{b.store}, func(o *lambdaidem.Options) { o.Namespace, o.Observer = "bank", lambdaidem.Discard })
			got, err := lambdaidem.Do(t.Context(), old, lambdaidem.Call{Operation: "transfer", Key: "k"}, func(context.Context) (string, error) {
				t.Error("it ran")
				return "", nil
			})
			if err != nil || got != "moved" {
				t.Errorf("got %q, %v", got, err)
			}
			b.wantBalance(t, "bob", 30)
		})
	}
}
