package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Both transports must return the same for every response. These tests compare the direct transport
// with the SDK's, and check rule X8 for both.

// verbs maps a name to a call of each method that sends requests. Each call needs a store of its
// own.
var verbs = map[string]func(context.Context, *Store) (lambdaidem.Record, error){
	"acquire": func(ctx context.Context, s *Store) (lambdaidem.Record, error) { return s.Acquire(ctx, claim) },
	"takeover": func(ctx context.Context, s *Store) (lambdaidem.Record, error) {
		current := claimed(claim).record()
		over := claimBy("token-2")
		over.Over = &current
		return s.Acquire(ctx, over)
	},
	"complete": func(ctx context.Context, s *Store) (lambdaidem.Record, error) { return s.Complete(ctx, lease, result) },
	"complete in parts": func(ctx context.Context, s *Store) (lambdaidem.Record, error) {
		s.opts.MaxInline = 1
		return s.Complete(ctx, lease, result)
	},
	"release": func(ctx context.Context, s *Store) (lambdaidem.Record, error) { return s.Release(ctx, lease, now) },
	"save steps": func(ctx context.Context, s *Store) (lambdaidem.Record, error) {
		return s.SaveSteps(ctx, lease, twoSteps, now)
	},
	"get": func(ctx context.Context, s *Store) (lambdaidem.Record, error) { return s.Get(ctx, claim.ID, now) },
	"commit": func(ctx context.Context, s *Store) (lambdaidem.Record, error) {
		return committing(s).Commit(ctx, &lambdaidem.Completion{Lease: lease, Result: result})
	},
	"commit twice": func(ctx context.Context, s *Store) (lambdaidem.Record, error) {
		tx, c := committing(s), &lambdaidem.Completion{Lease: lease, Result: result}
		if rec, err := tx.Commit(ctx, c); err == nil {
			return rec, nil
		}
		return tx.Commit(ctx, c)
	},
	"commit alone": func(ctx context.Context, s *Store) (lambdaidem.Record, error) {
		return committing(s).Commit(ctx, &lambdaidem.Completion{Result: result, Alone: true})
	},
}

// committing returns a transaction with one write of a handler.
func committing(s *Store) *transaction {
	tx, _ := s.Begin(strings.NewReader(strings.Repeat("r", 64))).(*transaction)
	tx.enlisted.PutValue("order", "orders", map[string]any{"id": "1", "paid": true})
	tx.Seal(lambdaidem.OutcomeSucceeded)
	return tx
}

// outcome is everything that can be observed of a call.
type outcome struct {
	Record    lambdaidem.Record
	Error     string
	Store     lambdaidem.StoreError
	Unsettled bool
	Attempts  []time.Duration // when each was made, since the beginning of the call
	Took      time.Duration
	Bodies    map[string]int // the number of different bodies that were sent, by operation
}

// call makes a call through the given transport. The faults happen to its attempts, in order.
func call(by Transport, verb func(context.Context, *Store) (lambdaidem.Record, error), faults []odd) outcome {
	var o outcome
	var began time.Time
	w := &faultyWire{next: unreachable{}}
	for _, f := range faults {
		w.faults = append(w.faults, f.fault)
	}
	client := dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String("http://dynamodb.test"), Credentials: credentials.NewStaticCredentialsProvider("AKID", "SECRET", ""),
		HTTPClient: doFunc(func(r *http.Request) (*http.Response, error) {
			o.Attempts = append(o.Attempts, time.Since(began))
			return w.Do(r)
		}),
	})
	s := New(client, "test", func(o *Options) { o.Transport, o.Random = by, func() float64 { return 0.5 } })
	if which, why := s.Transport(); which != by {
		panic("the transport is " + string(which) + ": " + why)
	}
	ctx, end := context.WithCancel(context.Background())
	defer end()
	began = time.Now()
	var err error
	o.Record, err = verb(context.WithValue(ctx, callerEndKey{}, end), s)
	o.Took = time.Since(began)
	o.Bodies = map[string]int{}
	for i, operation := range w.sent {
		if slices.Index(w.written, w.written[i]) == i {
			o.Bodies[operation]++
		}
	}
	if err != nil {
		o.Error = err.Error()
	}
	if se, ok := errors.AsType[*lambdaidem.StoreError](err); ok {
		o.Store = *se
		o.Store.Err = nil // Error has its text
	}
	if rejected, ok := errors.AsType[*lambdaidem.Rejected](err); ok {
		o.Unsettled = rejected.Unsettled
	}
	return o
}

// checkX8 fails the test if the call reports that nothing was written although an attempt may have
// written.
func (o *outcome) checkX8(t *testing.T, what string, verb string, faults []odd) {
	t.Helper()
	if verb == "get" {
		return
	}
	open := false
	for i := range o.Attempts {
		if i < len(faults) { // after the last fault, attempts find no connection
			open = (open || faults[i].wrote) && !faults[i].settles
		}
	}
	if open && o.Store.NotApplied && verb != "complete in parts" { // with parts, a fault may have hit a part and not the completion
		t.Errorf("%s: NotApplied, and an attempt may have written: %s", what, o.Error)
	}
}

// If the user has disabled the verification of checksums, neither the first attempt nor a later one
// verifies them.
func TestAnswersAreCheckedUnlessTheUserSaysNo(t *testing.T) {
	wrong := with(func(r *http.Response, text string) { r.Header.Set(fieldChecksum, crcOf(text+"x")) })
	for _, c := range []struct {
		unchecked bool
		faults    []fault
		trips     int
	}{
		{true, []fault{wrong}, 1}, {true, []fault{throttle, wrong}, 2}, {false, []fault{wrong, good}, 2}, {false, []fault{wrong, wrong, good}, 3},
	} {
		both(t, func(t *testing.T, by func(*Options)) {
			client, w := inMemory(c.faults...)
			s := New(dynamodb.New(client.Options(), func(o *dynamodb.Options) { o.DisableValidateResponseChecksum = c.unchecked }), "test", quick, by)
			if _, err := s.Complete(t.Context(), lease, result); err != nil || w.trips() != c.trips {
				t.Errorf("unchecked %v: %v after %d attempts; want none after %d", c.unchecked, err, w.trips(), c.trips)
			}
		})
	}
}

// With a single attempt, both transports report the same error: the one that the SDK reads from the
// response, or the timeout that ended the attempt.
func TestX5_TheOnlyAttemptSaysWhyItFailed(t *testing.T) {
	for _, f := range odds() {
		said := map[string]string{}
		both(t, func(t *testing.T, by func(*Options)) {
			synctest.Test(t, func(t *testing.T) {
				if f.cuts {
					return // this test has no context that the fault could end
				}
				client, w := inMemory(f.fault)
				s := New(client, "test", by, func(o *Options) { o.Attempts = 1 })
				_, err := s.Acquire(t.Context(), claim)
				which, _ := s.Transport()
				said[string(which)] = fmt.Sprint(err)
				if w.trips() != 1 {
					t.Errorf("%s: %d attempts; want 1", f.name, w.trips())
				}
				if f.name == "hangs" && !strings.Contains(err.Error(), "Options.AttemptTimeout") {
					t.Errorf("error is %v; want Options.AttemptTimeout in it", err)
				}
			})
		})
		if said["sdk"] != said["direct"] {
			t.Errorf("%s: by the SDK\n%s\nand directly\n%s", f.name, said["sdk"], said["direct"])
		}
	}
}
