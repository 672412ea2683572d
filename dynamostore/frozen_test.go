package dynamostore

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/internal/elapsed/elapsedtest"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// frozenSince returns a time that is d ago by the wall clock, and now by the monotonic clock, which
// stands still while the process is frozen.
func frozenSince(d time.Duration) time.Time { return elapsedtest.Move(time.Now(), -d, 0) }

func TestE1_AFrozenProcessSendsNoForgottenTransactionAgain(t *testing.T) {
	for startedAt, want := range map[time.Time]bool{frozenSince(maxResend + time.Minute): false, frozenSince(maxResend - time.Minute): true} {
		p := &prepared{completion: &lambdaidem.Completion{Alone: true}, startedAt: startedAt}
		if got := p.mayBeSent() == nil; got != want {
			t.Errorf("started at %v: %v, want %v", startedAt, got, want)
		}
	}
}

// Lambda freezes the process between two tries of one request. The first try was applied, and
// its reply was lost.
func TestE1_AProcessFrozenBetweenTwoTriesSendsNoForgottenTransactionAgain(t *testing.T) {
	for _, transport := range []Transport{TransportSDK, TransportDirect} {
		for name, c := range map[string]struct {
			frozen     time.Duration
			completion lambdaidem.Completion
			trips      int
			sent       bool
		}{
			"too long":               {maxResend + time.Minute, lambdaidem.Completion{Alone: true}, 1, false},
			"shortly":                {maxResend - time.Minute, lambdaidem.Completion{Alone: true}, 2, true},
			"shortly, with a lease":  {maxResendWithLease - time.Minute, lambdaidem.Completion{Lease: lease, Result: result}, 2, true},
			"too long, with a lease": {maxResendWithLease + time.Minute, lambdaidem.Completion{Lease: lease, Result: result}, 1, false},
			"too long, with a claim": {maxResend + time.Minute, lambdaidem.Completion{Lease: lease, Result: result, Claim: &lambdaidem.Claim{ID: lease.ID, Token: lease.Token}}, 1, false},
		} {
			t.Run(string(transport)+", "+name, func(t *testing.T) {
				var tx *transaction
				freeze := func(*http.Request, dynamodb.HTTPClient) (*http.Response, error) {
					tx.prepared.startedAt = frozenSince(c.frozen)
					return nil, errors.New("connection reset by peer")
				}
				client, w := inMemory(freeze, succeed)
				tx, _ = alone(New(client, "test", quick, func(o *Options) { o.Transport = transport })).(*transaction)
				_, err := tx.Commit(t.Context(), &c.completion)
				if w.trips() != c.trips || (err == nil) != c.sent {
					t.Errorf("%d tries, %v; want %d", w.trips(), err, c.trips)
				}
				if c.sent {
					return
				}
				wantStoreError(t, err, opCommit, lambdaidem.ReasonUnknown, false)
				if !errors.Is(err, errTooLate) {
					t.Errorf("the error is %v; want %v", err, errTooLate)
				}
			})
		}
	}
}

// A second Commit of a transaction with a lease does not renew the limit, so that an operator knows
// when the last request can arrive. If the transaction claims the record, the guard has a limit of
// its own.
func TestE1_ASecondCommitRenewsTheLimitOnlyWithAClaim(t *testing.T) {
	for name, claim := range map[string]*lambdaidem.Claim{"lease": nil, "claim": {ID: lease.ID, Token: lease.Token}} {
		c := &lambdaidem.Completion{Lease: lease, Result: result, Claim: claim}
		client, _ := inMemory(loseRequest, succeed)
		tx, _ := alone(New(client, "test", quick, func(o *Options) { o.Attempts = 1 })).(*transaction)
		if _, err := tx.Commit(t.Context(), c); err == nil {
			t.Errorf("%s: the first Commit succeeds", name)
		}
		tx.prepared.startedAt = frozenSince(maxResendWithLease + time.Minute)
		if _, err := tx.Commit(t.Context(), c); errors.Is(err, errTooLate) != (claim == nil) {
			t.Errorf("%s: the second Commit returns %v", name, err)
		}
	}
}

// The operator's machine has slept since the read. The new expiry must not be in the past.
func TestO2_ASleepCountsForExpiriesAndNotForLeases(t *testing.T) {
	const slept = 2 * time.Hour
	now := time.Now().Truncate(time.Second)
	inspected := Inspected{Now: now, readAt: frozenSince(slept)}
	if at := inspected.At().Sub(now); at > time.Minute {
		t.Errorf("At counts %v", at)
	}
	if latest := inspected.clock().latest().Sub(now); latest < slept || latest > slept+time.Minute {
		t.Errorf("latest counts %v", latest)
	}
	o := &Operator{opts: OperatorOptions{TTL: time.Hour}}
	if expires := o.expires(inspected).Sub(now); expires < slept+time.Hour {
		t.Errorf("a settled record expires %v after the read", expires)
	}
}

// The operator's machine has slept between a purge's read and its write. Then no lease has ended
// that is live, and no expiry is in the past.
func TestO2_ASleepDuringAPurge(t *testing.T) {
	const slept = 2 * time.Hour
	for name, end := range map[string]func(ctx context.Context) error{
		"released with a step": func(ctx context.Context) error {
			_, err := lambdaidem.Step(ctx, "card", func(context.Context) (int, error) { return 7, nil })
			return errors.Join(errLater, err)
		},
		"released": func(context.Context) error { return errLater },
		"in progress": func(ctx context.Context) error {
			_, err := lambdaidem.Step(ctx, "card", func(context.Context) (int, error) { return 7, nil })
			return lambdaidem.Uncertain(errors.Join(errLater, err))
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := openShifted(t)
			if _, err := d.pay(t, d.guard(New(d.client, d.table)), func(ctx context.Context) (string, error) { return "", end(ctx) }); !errors.Is(err, errLater) {
				t.Fatal(err)
			}
			was := d.inspect(t).Record
			o := d.operator(t)
			found, err := o.s.scanAll(t.Context(), "", 10)
			if err != nil || len(found.items) != 1 {
				t.Fatal(found, err)
			}
			found.clock.readAt = frozenSince(slept)
			p := &purge{o: o, opts: PurgeOptions{Steps: was.State == lambdaidem.InProgress, Forget: true}}
			p.opts.resolve()
			if p.shouldPurge(found.items[0], found.clock) {
				if err := p.record(t.Context(), found.items[0], found.clock); err != nil {
					t.Fatal(err)
				}
			}
			rec := d.inspect(t).Record
			if was.State == lambdaidem.InProgress {
				if len(rec.Steps) != 1 || rec.Token != was.Token {
					t.Errorf("the record with a live lease is now %+v", rec)
				}
				return
			}
			if left := rec.Expires.Sub(found.clock.date); left < slept+lambdaidem.MinTTL || !rec.Expires.Before(was.Expires) {
				t.Errorf("the record expires %v after the read", left)
			}
		})
	}
}
