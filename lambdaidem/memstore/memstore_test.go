package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
	"github.com/lambdaidem/toolkit/lambdaidem/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestStore(t *testing.T) {
	storetest.Test(t, func(*testing.T) lambdaidem.Store { return memstore.New() })
}

func claim(id, token string, now time.Time) lambdaidem.Claim {
	return lambdaidem.Claim{ID: id, Token: token, Now: now, LeaseEnd: now.Add(time.Minute), Expires: now.Add(time.Hour)}
}

func acquire(t *testing.T, s *memstore.Store, c lambdaidem.Claim) {
	t.Helper()
	r, err := s.Acquire(t.Context(), c)
	if err != nil || r.State != lambdaidem.InProgress || r.Token != c.Token {
		t.Fatalf("Acquire %s: %+v, %v; want the lease", c.ID, r, err)
	}
}

func TestX8_EndedContextIsATimeoutThatWroteNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := memstore.New()
	_, err := s.Acquire(ctx, claim("id", "a", start))
	failure := (*lambdaidem.StoreError)(nil)
	if !errors.As(err, &failure) || failure.Reason != lambdaidem.ReasonTimeout || !failure.NotApplied || !errors.Is(err, context.Canceled) {
		t.Errorf("Acquire with an ended context: %v", err)
	}
	if n := s.Len(); n != 0 {
		t.Errorf("it holds %d records", n)
	}
}

func TestL7_MemoryIsBoundedByTheRecordsThatCount(t *testing.T) {
	// One record is added each second. Each expires after an hour and is kept for another hour.
	const count = 2 * 3600
	s := memstore.New()
	most := 0
	for i := range 10 * count {
		acquire(t, s, claim(fmt.Sprint("id ", i), "a", start.Add(time.Duration(i)*time.Second)))
		most = max(most, s.Len())
	}
	if most > 2*count {
		t.Errorf("it held %d records at once; %d count or are kept", most, count)
	}
}

func TestL7_SweepDropsNothingThatCounts(t *testing.T) {
	s := memstore.New()
	held := claim("held", "a", start)
	held.Expires = time.Time{}
	acquire(t, s, held)
	leased := claim("leased", "a", start)
	leased.LeaseEnd = start.Add(48 * time.Hour)
	acquire(t, s, leased)
	acquire(t, s, claim("expired", "a", start))

	now := start.Add(24 * time.Hour)
	for i := range 100 {
		acquire(t, s, claim(fmt.Sprint("id ", i), "a", now))
	}
	if n := s.Len(); n != 102 {
		t.Errorf("it holds %d records, want the 102 that count", n)
	}
	for _, id := range []string{"held", "leased"} {
		if r, err := s.Get(t.Context(), id, now); err != nil || r.State != lambdaidem.InProgress {
			t.Errorf("Get %s: %+v, %v", id, r, err)
		}
	}
}

// Many goroutines call all methods for a few records. Each record must be completed once, all
// goroutines must see the same answer, and only one goroutine may hold a lease at a time.
func TestG3_ConcurrentAttemptsAgreeOnOneAnswer(t *testing.T) {
	const ids, workers, rounds = 4, 8, 200
	s := memstore.New()
	var mu sync.Mutex
	answers := map[string]string{} // by id
	holders := map[string]string{} // by id
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for round := range rounds {
				id, token := fmt.Sprint("id ", round%ids), fmt.Sprint("token ", w, "-", round)
				if err := attempt(t.Context(), s, id, token, round < rounds/2, &mu, answers, holders); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if len(answers) != ids {
		t.Errorf("%d of %d records were completed", len(answers), ids)
	}
}

// attempt acquires the lease of a record, taking it over if the record is released. It then
// releases or completes the record.
func attempt(ctx context.Context, s *memstore.Store, id, token string, release bool, mu *sync.Mutex, answers, holders map[string]string) error {
	r, err := s.Acquire(ctx, claim(id, token, start))
	if err == nil && r.State == lambdaidem.Released {
		over := claim(id, token, start)
		over.Over = &r
		r, err = s.Acquire(ctx, over)
	}
	if err != nil {
		return err
	}
	switch {
	case r.State == lambdaidem.Completed:
		mu.Lock()
		defer mu.Unlock()
		if first := answers[id]; string(r.Result.Value) != first {
			return fmt.Errorf("%s replays %q, the first answer was %q", id, r.Result.Value, first)
		}
		return nil
	case r.Token != token:
		return nil // another attempt holds the lease
	}

	mu.Lock()
	defer mu.Unlock()
	if other := holders[id]; other != "" {
		return fmt.Errorf("%s is held by %s and %s", id, other, token)
	}
	holders[id] = token
	mu.Unlock()
	r, err = s.Get(ctx, id, start)
	mu.Lock()
	if err != nil {
		return err
	}
	if r.Token != token {
		return fmt.Errorf("%s is held by %s, but reads %+v", id, token, r)
	}
	holders[id] = ""
	lease := lambdaidem.Lease{ID: id, Token: token, Expires: start.Add(time.Hour)}
	if release {
		_, err = s.Release(ctx, lease, start)
		return err
	}
	answers[id] = "answer of " + token
	_, err = s.Complete(ctx, lease, lambdaidem.Result{
		Outcome: lambdaidem.OutcomeSucceeded, Value: []byte(answers[id]), At: start, Expires: start.Add(time.Hour),
	})
	return err
}

// A guarded call costs an Acquire and a Complete. A replay costs an Acquire.
func BenchmarkStore(b *testing.B) {
	answer := []byte(strings.Repeat("x", 1<<10))
	b.Run("new", func(b *testing.B) {
		s := memstore.New()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			now := start.Add(time.Duration(i) * time.Second) // so that old records expire
			c := claim(fmt.Sprint("id ", i), "a", now)
			if _, err := s.Acquire(b.Context(), c); err != nil {
				b.Fatal(err)
			}
			lease := lambdaidem.Lease{ID: c.ID, Token: c.Token, Expires: c.Expires}
			if _, err := s.Complete(b.Context(), lease, lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, Value: answer, At: now, Expires: c.Expires}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("replay", func(b *testing.B) {
		s := memstore.New()
		c := claim("id", "a", start)
		if _, err := s.Acquire(b.Context(), c); err != nil {
			b.Fatal(err)
		}
		lease := lambdaidem.Lease{ID: c.ID, Token: c.Token, Expires: c.Expires}
		if _, err := s.Complete(b.Context(), lease, lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, Value: answer, At: start, Expires: c.Expires}); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if r, err := s.Acquire(b.Context(), claim("id", "b", start)); err != nil || r.State != lambdaidem.Completed {
				b.Fatal(r, err)
			}
		}
	})
}
