package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// keyService is the source of keys for the Encryption of these tests.
type keyService struct {
	current     string          // the id of the current key
	down        bool            // neither Current nor Find can be reached
	gone        bool            // Find returns ErrKeyGone
	hang        bool            // calls return only when their context ends
	currentDown bool            // Current can't be reached
	otherSecret bool            // Find returns another secret than Current
	currents    atomic.Int64    // the number of calls of Current
	finds       atomic.Int64    // the number of calls of Find
	answerSlow  <-chan struct{} // calls return when this channel is closed
}

var errKeyServiceDown = errors.New("the key service is down")

func (k *keyService) encryption(o *Options) {
	o.Encryption = Encryption{
		Current: func(ctx context.Context) (Key, error) {
			k.currents.Add(1)
			if err := k.answers(ctx); err != nil || k.currentDown {
				return Key{}, errors.Join(errKeyServiceDown, err)
			}
			return keyOf(k.current), nil
		},
		Find: func(ctx context.Context, id string) (Key, error) {
			k.finds.Add(1)
			if err := k.answers(ctx); err != nil {
				return Key{}, err
			}
			if k.gone {
				return Key{}, fmt.Errorf("no such key: %w", ErrKeyGone)
			}
			if k.otherSecret {
				return Key{ID: id, Secret: make([]byte, 32)}, nil
			}
			return keyOf(id), nil
		},
	}
}

func (k *keyService) answers(ctx context.Context) error {
	if k.answerSlow != nil {
		select {
		case <-k.answerSlow:
		case <-ctx.Done():
		}
	}
	if k.hang {
		<-ctx.Done()
	}
	if k.down || ctx.Err() != nil {
		return errors.Join(errKeyServiceDown, ctx.Err())
	}
	return nil
}

func (k *keyService) ring() *keyring {
	return newKeyring(resolved("New", "test", []func(*Options){k.encryption}).Encryption)
}

// wantFresh fails the test unless the current key has the given id, and Current was called asked
// times.
func wantFresh(t *testing.T, r *keyring, k *keyService, id string, asked int64) {
	t.Helper()
	key, err := r.fresh(t.Context())
	if err != nil || key.ID != id || k.currents.Load() != asked {
		t.Errorf("%v, %v, asked %d times; want %q after %d", key, err, k.currents.Load(), id, asked)
	}
}

// A key is fetched again after KeyFor. If that fails, the cached key is used for KeyFor longer, and
// then no more.
func TestS1_AKeyIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keyService{current: "k1"}
		r := k.ring()
		wantFresh(t, r, k, "k1", 1)
		k.current = "k2"
		time.Sleep(5*time.Minute - 1)
		wantFresh(t, r, k, "k1", 1)
		time.Sleep(1 * time.Nanosecond)
		wantFresh(t, r, k, "k2", 2)

		k.down = true
		time.Sleep(5 * time.Minute)
		wantFresh(t, r, k, "k2", 3) // the call of Current failed
		wantFresh(t, r, k, "k2", 3) // the next caller does not call Current again
		time.Sleep(15 * time.Second)
		wantFresh(t, r, k, "k2", 4)
		k.down = false
		time.Sleep(15 * time.Second)
		wantFresh(t, r, k, "k2", 5)

		k.down = true
		time.Sleep(10*time.Minute - 1)
		wantFresh(t, r, k, "k2", 6)
		time.Sleep(1 * time.Nanosecond)
		if key, err := r.fresh(t.Context()); !errors.Is(err, errKeyServiceDown) {
			t.Errorf("%v, %v after twice its time; want no key", key, err)
		}
		if key, err := r.forSealing(t.Context()); err != nil || key.ID != "k2" {
			t.Errorf("%v, %v for an attempt that had it before it ran", key, err)
		}
	})
}

// If the key service hangs while a cached key is usable, one call waits for two seconds, and the
// others don't wait.
func TestS1_AKeyThatServesIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keyService{current: "k1"}
		r := k.ring()
		wantFresh(t, r, k, "k1", 1)
		time.Sleep(5 * time.Minute)
		k.hang = true
		began := time.Now()
		asked := make(chan time.Duration)
		go func() {
			if _, err := r.fresh(t.Context()); err != nil {
				t.Error(err)
			}
			asked <- time.Since(began)
		}()
		synctest.Wait()
		wantFresh(t, r, k, "k1", 2)
		if waited := time.Since(began); waited != 0 {
			t.Errorf("another call waited %v", waited)
		}
		if waited := <-asked; waited != refreshTimeout {
			t.Errorf("the call that asked waited %v; want %v", waited, refreshTimeout)
		}
	})
}

// If the key service hangs while no key is cached, a call waits for five seconds, and so do the
// calls that wait for the same fetch.
func TestS1_AServiceThatHangsIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keyService{current: "k1", hang: true}
		r := k.ring()
		for name, ask := range map[string]func() (Key, error){
			"Current": func() (Key, error) { return r.fresh(t.Context()) },
			"Find":    func() (Key, error) { return r.byID(t.Context(), "k0") },
		} {
			began, done := time.Now(), make(chan error)
			for range 10 {
				go func() {
					_, err := ask()
					done <- err
				}()
			}
			for range 10 {
				if err := <-done; !errors.Is(err, errKeyServiceDown) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if waited := time.Since(began); waited != firstTimeout {
				t.Errorf("%s: ten calls waited %v; want %v", name, waited, firstTimeout)
			}
		}
		if k.currents.Load() != 1 || k.finds.Load() != 1 {
			t.Errorf("Current was asked %d times, Find %d times", k.currents.Load(), k.finds.Load())
		}
	})
}

// If the caller that fetches a key leaves, a waiting caller fetches the key itself.
func TestS1_WhoWaitsAsksIfTheOtherLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		k := &keyService{current: "k1", answerSlow: answer}
		r := k.ring()
		leaves, leave := context.WithCancel(t.Context())
		done := make(chan error, 2)
		go func() {
			_, err := r.fresh(leaves)
			done <- err
		}()
		synctest.Wait()
		go func() {
			_, err := r.fresh(t.Context())
			done <- err
		}()
		synctest.Wait()
		leave()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the one who left: %v", err)
		}
		close(answer)
		if err := <-done; err != nil || k.currents.Load() != 2 {
			t.Errorf("the one who waited: %v, after %d questions", err, k.currents.Load())
		}
	})
}

// If Current panics, a waiting caller calls it again.
func TestS1_AFunctionThatPanicsBlocksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, goOn := 0, make(chan struct{})
		of := StaticKeys(keyOf("k1"))
		current := of.Current
		of.KeyFor = time.Minute
		of.Current = func(ctx context.Context) (Key, error) {
			if asked++; asked == 1 {
				<-goOn
				panic("no key")
			}
			return current(ctx)
		}
		r := newKeyring(of)
		panicked := make(chan any)
		go func() {
			defer func() { panicked <- recover() }()
			_, _ = r.fresh(t.Context())
		}()
		synctest.Wait()
		waited := make(chan error)
		go func() {
			_, err := r.fresh(t.Context())
			waited <- err
		}()
		synctest.Wait()
		close(goOn)
		if v := <-panicked; v == nil {
			t.Error("the panic is swallowed")
		}
		if err := <-waited; err != nil || asked != 2 {
			t.Errorf("who waited: %v, after %d questions", err, asked)
		}
	})
}

// If Current reports that the key is gone, a running attempt can still use the key that it has.
func TestS1_WhatCurrentLosesIsKeptForWhoHasIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keyService{current: "k1"}
		r := k.ring()
		wantFresh(t, r, k, "k1", 1)
		r.encryption.Current = func(context.Context) (Key, error) { return Key{}, ErrKeyGone }
		time.Sleep(time.Hour)
		if _, err := r.fresh(t.Context()); !errors.Is(err, ErrKeyGone) {
			t.Errorf("%v", err)
		}
		if key, err := r.forSealing(t.Context()); err != nil || key.ID != "k1" {
			t.Errorf("%v, %v", key, err)
		}
	})
}

// If no key is cached, one of many callers fetches it. The others wait for the result, or until
// their own context ends.
func TestS1_OneCallAsksForAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		k := &keyService{current: "k1", answerSlow: answer}
		r := k.ring()
		done := make(chan error)
		for range 20 {
			go func() {
				_, err := r.fresh(t.Context())
				done <- err
			}()
		}
		synctest.Wait()
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.fresh(impatient); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v; want its own end", err)
		}
		close(answer)
		for range 20 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if n := k.currents.Load(); n != 1 {
			t.Errorf("it was asked %d times", n)
		}
	})
}

// A key that Find returned is cached for KeyFor, and so is the current key. If Find fails, the key
// is used for KeyFor longer. If the key is gone, it is dropped at once.
func TestS1_AKeyThatIsFoundIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keyService{current: "k1"}
		r := k.ring()
		wantFresh(t, r, k, "k1", 1)
		want := func(id string, asked int64) {
			t.Helper()
			key, err := r.byID(t.Context(), id)
			if err != nil || key.ID != id || k.finds.Load() != asked {
				t.Errorf("%v, %v, asked %d times; want %q after %d", key, err, k.finds.Load(), id, asked)
			}
		}
		want("k1", 0)
		want("k0", 1)
		want("k0", 1)
		time.Sleep(5 * time.Minute)
		want("k0", 2)
		k.down = true
		time.Sleep(10*time.Minute - 1)
		want("k0", 3)
		want("k0", 3) // a later replay does not call Find again
		time.Sleep(1 * time.Nanosecond)
		if _, err := r.byID(t.Context(), "k0"); !errors.Is(err, errKeyServiceDown) || errors.Is(err, ErrKeyGone) {
			t.Errorf("%v; want that it can't be reached", err)
		}
		k.down = false
		want("k0", 5)
		time.Sleep(5 * time.Minute)
		k.gone = true
		asked := k.finds.Load() + 1
		for range 2 {
			if _, err := r.byID(t.Context(), "k0"); !errors.Is(err, ErrKeyGone) || k.finds.Load() != asked {
				t.Errorf("%v, asked %d times; want ErrKeyGone after %d", err, k.finds.Load(), asked)
			}
		}
		k.down, k.gone = true, false
		time.Sleep(15 * time.Second)
		if _, err := r.byID(t.Context(), "k0"); !errors.Is(err, errKeyServiceDown) {
			t.Errorf("%v: it was gone, and serves again", err)
		}
	})
}

// If Current or Find returns an invalid key or another key, the error says so.
func TestS1_FunctionsThatReturnNoKey(t *testing.T) {
	for want, of := range map[string]Encryption{
		"Current returned a key that is none: its id has 0": {Current: func(context.Context) (Key, error) { return Key{}, nil }},
		"Find returned a key that is none: its secret has":  {Find: func(_ context.Context, id string) (Key, error) { return Key{ID: id}, nil }},
		`Find returned key "k2"`:                            {Find: func(context.Context, string) (Key, error) { return keyOf("k2"), nil }},
	} {
		of.KeyFor = time.Minute
		r := &keyring{encryption: of, byIDs: newKeyring(StaticKeys(keyOf("k9"))).byIDs}
		var err error
		if of.Current != nil {
			_, err = r.fresh(t.Context())
		} else {
			_, err = r.byID(t.Context(), "k1")
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

// keyedGuard is a guard on a table, with keys from a keyService.
type keyedGuard struct {
	keys   *keyService
	client *dynamodb.Client
	table  string
	wire   *faultyWire
	store  *Store
	guard  *lambdaidem.Guard
	runs   int
}

func newKeyedGuard(t *testing.T, optFns ...func(*lambdaidem.Options)) *keyedGuard {
	client, table := freshTable(t)
	client, w := over(client)
	g := &keyedGuard{client: client, table: table, wire: w}
	g.with(&keyService{current: "k1"}, optFns...)
	return g
}

// with gives the guard the keys of the given service.
func (g *keyedGuard) with(keys *keyService, optFns ...func(*lambdaidem.Options)) {
	g.keys = keys
	g.store = New(g.client, g.table, patient, keys.encryption)
	g.guard = lambdaidem.New(g.store, append([]func(*lambdaidem.Options){func(o *lambdaidem.Options) {
		o.Observer, o.Namespace = lambdaidem.Discard, "keys"
	}}, optFns...)...)
}

func (g *keyedGuard) prepare(t *testing.T) {
	t.Helper()
	if err := g.store.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// anotherProcess returns a guard of another process, whose current key is k2. It has cached no
// other key.
func (g *keyedGuard) anotherProcess(t *testing.T) *keyedGuard {
	t.Helper()
	other := *g
	other.with(&keyService{current: "k2"})
	other.prepare(t)
	return &other
}

func (g *keyedGuard) do(t *testing.T, end func(context.Context) error) error {
	t.Helper()
	got, err := lambdaidem.Do(t.Context(), g.guard, lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (string, error) {
		g.runs++
		return "paid", end(ctx)
	})
	if err == nil && got != "paid" {
		t.Errorf("%q", got)
	}
	return err
}

func succeeds(context.Context) error { return nil }

// wantRefused fails the test unless err is a refusal with the given code and status, and the
// handler has run the given number of times.
func (g *keyedGuard) wantRefused(t *testing.T, err error, code lambdaidem.Code, status, runs int) {
	t.Helper()
	refusal, ok := errors.AsType[*lambdaidem.Error](err)
	if !ok || refusal.Code != code || refusal.Status != status || g.runs != runs {
		t.Errorf("%v, after %d runs; want %s, %d, after %d", err, g.runs, code, status, runs)
	}
}

// Without a key, no handler runs and no write is sent. The key that was fetched before the handler
// ran is available for its answer, even if the key service fails meanwhile.
func TestS1_TheKeyIsHadBeforeTheHandlerRuns(t *testing.T) {
	for _, optimistic := range []bool{false, true} {
		t.Run(fmt.Sprint("optimistic ", optimistic), func(t *testing.T) {
			g := newKeyedGuard(t, func(o *lambdaidem.Options) { o.Optimistic = optimistic })
			g.keys.down = true
			g.wantRefused(t, g.do(t, succeeds), lambdaidem.ErrStoreUnavailable, http.StatusServiceUnavailable, 0)
			if n := len(g.wire.bodies("PutItem")) + len(g.wire.bodies("TransactWriteItems")); n != 0 {
				t.Errorf("%d writes were sent", n)
			}
			g.keys.down = false
			err := g.do(t, func(context.Context) error {
				g.keys.down = true // the key service stays down while the handler runs
				return nil
			})
			if err != nil || g.runs != 1 {
				t.Errorf("%v after %d runs", err, g.runs)
			}
			runs := 1
			if optimistic {
				runs = 2 // a duplicate runs too, and loses the race
			}
			if err := g.do(t, succeeds); err != nil || g.runs != runs { // Find returns the key that was fetched before
				t.Errorf("%v after %d runs", err, g.runs)
			}
		})
	}
}

// Without a current key, an existing record still counts: its answer is replayed, and another
// payload is refused. With FailOpen, the handler does not run for it either.
func TestS1_WithoutAKeyRecordsStillCount(t *testing.T) {
	for _, open := range []bool{false, true} {
		t.Run(fmt.Sprint("fail open ", open), func(t *testing.T) {
			g := newKeyedGuard(t)
			if err := g.do(t, succeeds); err != nil {
				t.Fatal(err)
			}
			other := *g
			other.with(&keyService{current: "k2"}, func(o *lambdaidem.Options) { o.FailOpen = open })
			other.keys.currentDown = true
			if err := other.do(t, succeeds); err != nil || other.runs != 1 { // Find returns the key
				t.Errorf("%v after %d runs", err, other.runs)
			}
			_, err := lambdaidem.Do(t.Context(), other.guard, lambdaidem.Call{Operation: "pay", Key: "k", Payload: "another"}, func(context.Context) (string, error) {
				t.Error("it runs with another payload")
				return "", nil
			})
			other.wantRefused(t, err, lambdaidem.ErrPayloadMismatch, http.StatusUnprocessableEntity, 1)
		})
	}
}

// The caller needs no key for the steps of a record that another attempt holds, nor to release a
// lease.
func TestS1_WhatStandsInTheWayNeedsNoKey(t *testing.T) {
	client, table := freshTable(t)
	first := New(client, table, patient, encrypted("k1"))
	if _, err := first.Acquire(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	steps := lambdaidem.Steps{"charge": []byte("1")}
	if _, err := first.SaveSteps(t.Context(), lease, steps, now); err != nil {
		t.Fatal(err)
	}
	for name, keys := range map[string]*keyService{"down": {current: "k2", down: true}, "gone": {current: "k2", gone: true}} {
		s := New(client, table, patient, keys.encryption)
		rec, err := s.Acquire(t.Context(), claimBy("token-2"))
		if err != nil || rec.Token != claim.Token || len(rec.Steps) != 1 || rec.Steps["charge"] != nil {
			t.Errorf("%s: a live attempt: %+v, %v", name, rec, err)
		}
		keys.down = true
		over := claimBy("token-2")
		over.Over = &rec
		_, err = New(client, table, patient, keys.encryption).Acquire(t.Context(), over)
		wantStoreError(t, err, opAcquire, lambdaidem.ReasonKey, true)
		keys.down = false
		if err := s.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		keys.down = name == "down"
		late := lambdaidem.Lease{ID: claim.ID, Token: "token-0"}
		if _, err := s.Complete(t.Context(), late, result); !errors.Is(err, lambdaidem.ErrLeaseLost) {
			t.Errorf("%s: a late completion: %v", name, err)
		}
		if _, err := s.Release(t.Context(), late, now); !errors.Is(err, lambdaidem.ErrLeaseLost) {
			t.Errorf("%s: a late release: %v", name, err)
		}
		if _, err := s.SaveSteps(t.Context(), late, steps, now); !errors.Is(err, lambdaidem.ErrLeaseLost) {
			t.Errorf("%s: a late save: %v", name, err)
		}
		if n := keys.finds.Load(); n != 0 {
			t.Errorf("%s: its key was asked for %d times, for nothing", name, n)
		}
	}
	blind := New(client, table, patient) // has no encryption, and releases a record with encrypted steps
	if rec, err := blind.Release(t.Context(), lease, now); err != nil || rec.State != lambdaidem.Released {
		t.Errorf("a release: %+v, %v", rec, err)
	}
}

// DeadLeases finds leases without a key.
func TestS1_DeadLeasesNeedNoKey(t *testing.T) {
	index := func(o *Options) { o.LeaseIndex = "leases" }
	client, table := freshTable(t, index)
	s := New(client, table, patient, index, encrypted("k1"))
	for i := range 3 {
		c := claim
		c.ID, c.LeaseEnd = fmt.Sprint("idem#", i), now.Add(-time.Hour)
		if _, err := s.Acquire(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if _, err := s.SaveSteps(t.Context(), lambdaidem.Lease{ID: c.ID, Token: c.Token}, lambdaidem.Steps{"a": []byte("1")}, now); err != nil {
			t.Fatal(err)
		}
	}
	found := 0
	for rec, err := range New(client, table, patient, index).DeadLeases(t.Context()) {
		if err != nil || len(rec.Steps) != 1 {
			t.Errorf("%+v, %v", rec, err)
		}
		found++
	}
	if found != 3 {
		t.Errorf("%d dead leases were found; want 3", found)
	}
}

// With FailOpen, the handler runs without a key, as it does without a store.
func TestS1_FailingOpenWithoutAKey(t *testing.T) {
	g := newKeyedGuard(t, func(o *lambdaidem.Options) { o.FailOpen = true })
	g.keys.down = true
	if err := g.do(t, succeeds); err != nil || g.runs != 1 {
		t.Errorf("%v after %d runs", err, g.runs)
	}
}

// If the key of a stored answer can't be reached, a replay gets 503, and a later one the answer. If
// the key is gone, replays fail for good. In neither case does the handler run.
func TestS1_AReplayWithoutItsKey(t *testing.T) {
	g := newKeyedGuard(t)
	if err := g.do(t, succeeds); err != nil {
		t.Fatal(err)
	}
	other := g.anotherProcess(t)
	other.keys.down = true
	other.wantRefused(t, other.do(t, succeeds), lambdaidem.ErrStoreUnavailable, http.StatusServiceUnavailable, 1)
	other.keys.down, other.keys.gone = false, true
	for range 2 {
		other.wantRefused(t, other.do(t, succeeds), lambdaidem.ErrAnswerUnavailable, http.StatusInternalServerError, 1)
	}
	other.with(&keyService{current: "k2"}) // a third process, which has the key
	if err := other.do(t, succeeds); err != nil || other.runs != 1 {
		t.Errorf("%v after %d runs", err, other.runs)
	}
}

// If the key of an earlier attempt's steps can't be reached, the handler does not run, and the
// caller gets 503. If the key is gone, the handler never runs.
func TestS1_StepsWithoutTheirKey(t *testing.T) {
	errReleased := errors.New("released")
	charges := 0
	handler := func(end error) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := lambdaidem.Step(ctx, "charge", func(context.Context) (string, error) {
				charges++
				return "ch_1", nil
			})
			return errors.Join(err, end)
		}
	}
	g := newKeyedGuard(t)
	if err := g.do(t, handler(errReleased)); !errors.Is(err, errReleased) {
		t.Fatal(err)
	}
	other := g.anotherProcess(t)
	other.keys.down = true
	other.wantRefused(t, other.do(t, handler(nil)), lambdaidem.ErrStoreUnavailable, http.StatusServiceUnavailable, 1)
	other.keys.down, other.keys.gone = false, true
	for range 2 { // the first refusal leaves no lease behind
		other.wantRefused(t, other.do(t, handler(nil)), lambdaidem.ErrRecordForeign, http.StatusInternalServerError, 1)
	}
	open := *other
	open.with(&keyService{current: "k2"}, func(o *lambdaidem.Options) { o.FailOpen = true })
	open.prepare(t)
	open.keys.down = true
	open.wantRefused(t, open.do(t, handler(nil)), lambdaidem.ErrStoreUnavailable, http.StatusServiceUnavailable, 1)
	other.with(&keyService{current: "k2"})
	if err := other.do(t, handler(nil)); err != nil || other.runs != 2 || charges != 1 {
		t.Errorf("%v after %d runs and %d charges", err, other.runs, charges)
	}
}

// A takeover finds more steps than its caller has seen, and can't decrypt them. The result is
// unknown, and the lease can be released.
func TestS1_ATakeoverThatCantReadTheSteps(t *testing.T) {
	client, table := freshTable(t)
	keys := &keyService{current: "k2"}
	s := New(client, table, patient, keys.encryption)
	first := New(client, table, patient, encrypted("k1"))
	current, err := first.Acquire(t.Context(), claim)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.SaveSteps(t.Context(), lease, lambdaidem.Steps{"a": []byte("1")}, now); err != nil {
		t.Fatal(err)
	}
	if err := s.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	keys.down = true
	next := claimBy("token-2")
	next.Over = &current
	_, err = s.Acquire(t.Context(), next)
	wantStoreError(t, err, opAcquire, lambdaidem.ReasonKey, false)
	keys.down = false
	rec, err := s.Release(t.Context(), lambdaidem.Lease{ID: claim.ID, Token: "token-2", Expires: lease.Expires}, now)
	if err != nil || len(rec.Steps) != 1 {
		t.Fatalf("%+v, %v", rec, err)
	}
	next.Token, next.Over = "token-3", &rec
	if rec, err = s.Acquire(t.Context(), next); err != nil || string(rec.Steps["a"]) != "1" {
		t.Errorf("%+v, %v", rec, err)
	}
}

// If the clock was set back, a cached key is due to be fetched again, and can still be used.
func TestS1_AKeyFromTheFutureIsDueAndServes(t *testing.T) {
	s := keySlot{key: keyOf("k1"), fetchedAt: time.Now().Add(time.Hour).Round(0)}
	if !s.due(time.Minute) || !s.usable(time.Minute) {
		t.Errorf("due %v, serves %v", s.due(time.Minute), s.usable(time.Minute))
	}
}

// If the application changes a key that it has returned, the cached key stays the same.
func TestS1_AKeyIsKeptAsItWasReturned(t *testing.T) {
	key := keyOf("k1")
	r := newKeyring(resolved("New", "test", []func(*Options){func(o *Options) {
		o.Encryption.Current = func(context.Context) (Key, error) { return key, nil }
		o.Encryption.Find = func(context.Context, string) (Key, error) { return key, nil }
	}}).Encryption)
	for name, ask := range map[string]func() (Key, error){
		"Current": func() (Key, error) { return r.fresh(t.Context()) },
		"Find":    func() (Key, error) { return r.byID(t.Context(), "k1") },
	} {
		r.byIDs.Purge()
		copy(key.Secret, keyOf("k1").Secret)
		if _, err := ask(); err != nil {
			t.Fatal(err)
		}
		clear(key.Secret)
		if kept, err := ask(); err != nil || !bytes.Equal(kept.Secret, keyOf("k1").Secret) {
			t.Errorf("%s: it is %x now, %v", name, kept.Secret, err)
		}
	}
}

// Acquire fetches the current key when KeyFor has passed. It fails if the key has been out of reach
// for too long.
func TestS1_AnAcquireAsksForTheKeyAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keyService{current: "k1"}
		client, w := inMemory(refuseFor(`{}`), refuseFor(`{}`))
		s := New(client, "test", k.encryption)
		for range 2 {
			if _, err := s.Acquire(t.Context(), claim); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Minute)
		}
		if n := k.currents.Load(); n != 2 {
			t.Errorf("it was asked %d times", n)
		}
		k.down = true
		time.Sleep(5 * time.Minute)
		_, err := s.Acquire(t.Context(), claim)
		wantStoreError(t, err, opAcquire, lambdaidem.ReasonKey, true)
		wantStoreError(t, s.Prepare(t.Context()), opPrepare, lambdaidem.ReasonKey, true)
		if n := len(w.bodies("PutItem")); n != 2 {
			t.Errorf("%d locks were sent; want none without a key", n)
		}
	})
}

// The StoreError of a replay without its key has ReasonKey.
func TestS1_ALoadWithoutItsKeyIsNamed(t *testing.T) {
	k := &keyService{current: "k2", down: true}
	client, _ := inMemory()
	rec := completedRecord("idem#a", "t", keyOf("k1").seal("idem#a", "t", "sealed value", []byte("{}")), 2)
	_, err := New(client, "test", k.encryption).Load(t.Context(), rec)
	wantStoreError(t, err, opLoad, lambdaidem.ReasonKey, true)
	k.down = false
	if got, err := New(client, "test", k.encryption).Load(t.Context(), rec); err != nil || string(got.Value) != "{}" {
		t.Errorf("%q, %v", got.Value, err)
	}
}

// The reply to a takeover is lost, and the next try is refused by the attempt's own record. Acquire
// then succeeds, with the steps decrypted.
func TestS1_ATakeoverThatFindsItselfHasTheSteps(t *testing.T) {
	client, table := freshTable(t)
	first := New(client, table, patient, encrypted("k1"))
	if _, err := first.Acquire(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	current, err := first.SaveSteps(t.Context(), lease, lambdaidem.Steps{"a": []byte("1")}, now)
	if err != nil {
		t.Fatal(err)
	}
	k := &keyService{current: "k2"}
	faulty, w := over(client, loseReply)
	next := claimBy("token-2")
	next.Over = &current
	rec, err := New(faulty, table, quick, patient, k.encryption).Acquire(t.Context(), next)
	if err != nil || rec.Token != "token-2" || string(rec.Steps["a"]) != "1" || w.trips() != 3 {
		t.Errorf("%+v, %v after %d trips; want two for the takeover, and one that encrypts the steps under k2", rec, err, w.trips())
	}
}

// The caller that refreshes a usable key leaves. The next caller refreshes the key at once.
func TestS1_WhoLeavesPausesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keyService{current: "k1"}
		r := k.ring()
		wantFresh(t, r, k, "k1", 1)
		time.Sleep(5 * time.Minute)
		k.hang = true
		leaves, leave := context.WithTimeout(t.Context(), time.Millisecond)
		defer leave()
		if key, err := r.fresh(leaves); err != nil || key.ID != "k1" {
			t.Errorf("%v, %v", key, err)
		}
		k.hang, k.current = false, "k2"
		wantFresh(t, r, k, "k2", 3)
	})
}

// While a caller waits for a fetch, the cached key becomes too old. The caller must not get it.
func TestS1_AKeyIsNotHandedOutLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keyService{current: "k1"}
		r := k.ring()
		wantFresh(t, r, k, "k1", 1)
		time.Sleep(10*time.Minute - time.Second)
		k.hang = true
		done := make(chan error)
		go func() {
			_, err := r.fresh(t.Context()) // refreshTimeout, 2 s
			done <- err
		}()
		time.Sleep(1500 * time.Millisecond)
		if key, err := r.fresh(t.Context()); err == nil {
			t.Errorf("%v is given out after twice its time", key)
		}
		if err := <-done; err == nil {
			t.Error("it is given out after twice its time to who has asked")
		}
	})
}

// A key that was gone can be used again when Current returns it.
func TestS1_AKeyThatEncryptsAgainIsNotGone(t *testing.T) {
	k := &keyService{current: "k1", gone: true}
	r := k.ring()
	if _, err := r.byID(t.Context(), "k1"); !errors.Is(err, ErrKeyGone) {
		t.Fatalf("%v; want ErrKeyGone", err)
	}
	wantFresh(t, r, k, "k1", 1)
	if key, err := r.byID(t.Context(), "k1"); err != nil || key.ID != "k1" {
		t.Errorf("%v, %v; want the key that this process encrypts with", key, err)
	}
}

// Anyone who can write to the table chooses the ids of keys, and the process caches each id that it
// looks up. So longer ids must be refused.
func TestS1_AKeyIDThatIsTooLongIsNotRemembered(t *testing.T) {
	client, table := freshTable(t)
	k := &keyService{current: "k1"}
	s := New(client, table, patient, k.encryption)
	rec := completes(t, s, claim, result)
	rec.Result.Apart.(*apart).Data = keyOf(strings.Repeat("x", maxKeyID+1)).seal(rec.ID, rec.Token, rec.Result.Apart.(*apart).purpose(), result.Value)
	_, err := s.Load(t.Context(), rec)
	wantStoreError(t, err, opLoad, lambdaidem.ReasonForeign, true)
	if n := k.finds.Load(); n != 0 {
		t.Errorf("Find was asked %d times", n)
	}
	if n := s.keys.byIDs.Len(); n != 1 {
		t.Errorf("%d keys are remembered; want the current one alone", n)
	}
}

// A checksum of the plaintext would let anyone who can read the table confirm a guess of the
// answer.
func TestS1_TheChecksumOfAnEncryptedAnswerSaysNothingOfIt(t *testing.T) {
	client, table := freshTable(t)
	rec := completes(t, New(client, table, patient, encrypted("k1")), claim, result)
	a := rec.Result.Apart.(*apart)
	for _, encoding := range append(encodings[:], a.Encoding) {
		if bytes.Equal(a.Parts.Checksum, checksum(rec.ID, rec.Token, encoding, result.Value)) {
			t.Errorf("the checksum is that of the plaintext as %q", encoding)
		}
	}
}

// If the clock was set back, ErrKeyGone is not cached any longer.
func TestS1_GoneIsForgottenWhereTheClockIsSetBack(t *testing.T) {
	s := keySlot{mayBeGone: true, goneErr: ErrKeyGone, fetchedAt: time.Now().Add(time.Hour).Round(0)}
	key, err := s.get(t.Context(), time.Minute, func(context.Context) (Key, error) { return keyOf("k1"), nil })
	if err != nil || key.ID != "k1" {
		t.Errorf("%v, %v", key, err)
	}
}

// Other processes find the former key, but not the new one.
func TestO3_AProofOfOneKeyIsNoneOfTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &keyService{current: "k1"}
		client, _ := inMemory()
		s := New(client, "test", service.encryption, func(o *Options) { o.Encryption.KeyFor = time.Hour })
		if _, err := s.keys.fresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Minute)
		if err := s.keys.prove(t.Context()); err != nil {
			t.Errorf("k1: %v", err)
		}
		service.current, service.otherSecret = "k2", true
		time.Sleep(30*time.Minute + time.Second) // k1 is older than KeyFor, and its proof is not
		if err := s.keys.prove(t.Context()); err == nil {
			t.Error("k2 counts as proven, and Find returns another secret")
		}
	})
}
