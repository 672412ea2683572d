package dynamostore_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
)

// A stored step does not run again, so a write that was enlisted inside it would be missing from a
// retry. Enlist therefore panics.
func TestG1_WriteIsNotEnlistedWithinAStep(t *testing.T) {
	b := newUserBank(t)
	defer func() {
		if v, _ := recover().(string); !strings.Contains(v, "within a step") {
			t.Errorf("the panic is %q", v)
		}
	}()
	_, _ = lambdaidem.Do(t.Context(), b.guard, lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (string, error) {
		return lambdaidem.Step(ctx, "charge", func(ctx context.Context) (string, error) {
			b.add(ctx, "shop", 30)
			return "ch_1", nil
		})
	})
	t.Error("it was taken")
}

// Inside a step, no write can be enlisted or changed through a Tx that the handler got before the
// step. An attempt stores the step and fails, and a retry would skip it.
func TestG1_NothingIsEnlistedWithinAStepThroughAnOuterTx(t *testing.T) {
	for name, enlist := range map[string]func(b *userBank, tx *dynamostore.Tx, had *dynamostore.Write){
		"Put":    func(_ *userBank, tx *dynamostore.Tx, _ *dynamostore.Write) { tx.Put("late", types.Put{}) },
		"Update": func(_ *userBank, tx *dynamostore.Tx, _ *dynamostore.Write) { tx.Update("late", types.Update{}) },
		"Delete": func(_ *userBank, tx *dynamostore.Tx, _ *dynamostore.Write) { tx.Delete("late", types.Delete{}) },
		"Check":  func(_ *userBank, tx *dynamostore.Tx, _ *dynamostore.Write) { tx.Check("late", types.ConditionCheck{}) },
		"If": func(_ *userBank, _ *dynamostore.Tx, had *dynamostore.Write) {
			had.If("balance > :no", dynamostore.Args{":no": 0})
		},
		"Else":           func(_ *userBank, _ *dynamostore.Tx, had *dynamostore.Write) { had.Else(errors.New("no")) },
		"AlsoWhenFailed": func(_ *userBank, tx *dynamostore.Tx, _ *dynamostore.Write) { tx.AlsoWhenFailed() },
	} {
		t.Run(name, func(t *testing.T) {
			b := newUserBank(t)
			b.set(t, "shop", 0)
			func() {
				defer func() {
					if v, _ := recover().(string); !strings.Contains(v, "a retry skips it") {
						t.Errorf("the panic is %q", v)
					}
				}()
				_, _ = lambdaidem.Do(t.Context(), b.guard, lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (string, error) {
					had := b.add(ctx, "shop", 30)
					tx := dynamostore.Enlist(ctx)
					return lambdaidem.Step(ctx, "charge", func(context.Context) (string, error) {
						enlist(b, tx, had)
						return "ch_1", nil
					})
				})
				t.Error("it was taken")
			}()
			if balance := b.balance(t, "shop"); balance != 0 {
				t.Errorf("the balance is %d", balance)
			}
		})
	}
}

// If an earlier request of a transaction may still be applied, the caller of an optimistic attempt
// is never told that nothing was written.
//
// In an earlier version, a condition failed at the second try, and the record was absent, which
// proves nothing. The caller got ErrConditionFailed or the error of Else. Then the first request
// arrived and moved the money.
func TestE4_FailedConditionAfterAnUnknownTransaction(t *testing.T) {
	for name, verdict := range map[string]error{
		"without Else": nil,
		"Retryable":    lambdaidem.Retryable(errors.New("not enough yet")),
		"Reject 503":   lambdaidem.Reject(503, "not_now", "Not enough yet."),
	} {
		t.Run(name, func(t *testing.T) {
			b := newUserBank(t, func(o *lambdaidem.Options) { o.Optimistic = true })
			b.set(t, "alice", 0)
			b.wire.keepBack("TransactWriteItems")
			_, err := lambdaidem.Do(t.Context(), b.guard, lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (string, error) {
				b.add(ctx, "alice", -30).Else(verdict)
				return "paid", nil
			})
			b.set(t, "alice", 100)
			b.wire.arrive(t)
			if balance := b.balance(t, "alice"); balance != 100 && !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
				t.Errorf("the answer was %v, but the money was moved: the balance is %d; want %v", err, balance, lambdaidem.ErrOutcomeUnknown)
			}
		})
	}
}

// The same under policy Hold, with a lease. The outcome is uncertain, so the attempt keeps its
// lease, and the late transaction is applied.
func TestX2_FailedConditionAfterAnUnknownTransactionUnderHold(t *testing.T) {
	b := newUserBank(t, func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold })
	b.set(t, "alice", 0)
	b.wire.keepBack("TransactWriteItems")
	_, err := lambdaidem.Do(t.Context(), b.guard, lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (string, error) {
		b.add(ctx, "alice", -30)
		return "paid", nil
	})
	b.set(t, "alice", 100)
	b.wire.arrive(t)
	if balance := b.balance(t, "alice"); balance != 100 && !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
		t.Errorf("the answer was %v, but the money was moved: the balance is %d; want %v", err, balance, lambdaidem.ErrOutcomeUnknown)
	}
}

// The same for an attempt that failed open. In an earlier version, the caller got the 402 of Else,
// which was not stored, and the money was moved.
func TestX5_FailedConditionAfterAnUnknownTransaction(t *testing.T) {
	b := newUserBank(t, func(o *lambdaidem.Options) { o.FailOpen = true })
	b.set(t, "alice", 0)
	b.wire.breakAll("PutItem") // the record can't be locked
	b.wire.keepBack("TransactWriteItems")
	_, err := lambdaidem.Do(t.Context(), b.guard, lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (string, error) {
		b.add(ctx, "alice", -30).Else(lambdaidem.Reject(402, "insufficient_funds", ""))
		return "paid", nil
	})
	b.set(t, "alice", 100)
	b.wire.arrive(t)
	if balance := b.balance(t, "alice"); balance != 100 && !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
		t.Errorf("the answer was %v, but the money was moved: the balance is %d; want %v", err, balance, lambdaidem.ErrOutcomeUnknown)
	}
}

// A Do that runs unguarded inside a guarded handler belongs to the attempt of that handler, like an
// unguarded HTTP request inside it. RecordID and DownstreamKey are the same in every attempt.
//
// In an earlier version, such a Do hid the attempt. RecordID and DownstreamKey returned "" and
// Attempt 0, a step ran again in the next attempt, and each attempt committed the enlisted writes
// separately.
func TestE5_UnguardedDoInsideAGuardedHandler(t *testing.T) {
	b := newUserBank(t, func(o *lambdaidem.Options) { o.KeyOptional = true })
	b.set(t, "shop", 0)
	tries, charges := 0, 0
	pay := func() (string, error) {
		return lambdaidem.Do(t.Context(), b.guard, lambdaidem.Call{Operation: "pay", Key: "k"}, func(outer context.Context) (string, error) {
			tries++
			_, err := lambdaidem.Do(outer, b.guard, lambdaidem.Call{Operation: "charge"}, func(ctx context.Context) (string, error) {
				if lambdaidem.RecordID(ctx) != lambdaidem.RecordID(outer) {
					t.Errorf("RecordID is %q, around it %q", lambdaidem.RecordID(ctx), lambdaidem.RecordID(outer))
				}
				if lambdaidem.DownstreamKey(ctx, "charge") != lambdaidem.DownstreamKey(outer, "charge") {
					t.Errorf("DownstreamKey is %q, around it %q", lambdaidem.DownstreamKey(ctx, "charge"), lambdaidem.DownstreamKey(outer, "charge"))
				}
				b.add(ctx, "shop", 30)
				return lambdaidem.Step(ctx, "charge", func(context.Context) (string, error) { charges++; return "ch", nil })
			})
			if err == nil && tries == 1 {
				err = errors.New("something else failed")
			}
			return "paid", err
		})
	}
	_, _ = pay()
	if got, err := pay(); err != nil {
		t.Fatal(got, err)
	}
	if balance := b.balance(t, "shop"); balance != 30 {
		t.Errorf("one record, and its enlisted write happened %d times", balance/30)
	}
	if charges != 1 {
		t.Errorf("one record, and its step ran %d times", charges)
	}
}

// If the writes of an unguarded request can't be committed, the guard gives up early enough to send
// the 503, as it does for a completion.
//
// In an earlier version, it tried until the invocation's deadline. Lambda ended the function, and
// the caller got no answer.
func TestE1_UnguardedCommitLeavesTimeToAnswer(t *testing.T) {
	b := newUserBank(t)
	store := idemtest.NewStore(b.store)
	store.Always(idemtest.Commit, idemtest.Refuse(lambdaidem.ReasonThrottled))
	guard := lambdaidem.New(store, func(o *lambdaidem.Options) { o.Namespace, o.Observer = "bank", lambdaidem.Discard })
	handler := guard.APIGatewayV2(func(ctx context.Context, _ events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		b.add(ctx, "shop", 30)
		return events.APIGatewayV2HTTPResponse{StatusCode: 200}, nil
	})
	for _, method := range []string{http.MethodPost, http.MethodPut} {
		t.Run(method, func(t *testing.T) {
			ctx := idemtest.Invocation(t, 3*time.Second)
			deadline, _ := ctx.Deadline()
			out, err := handler(ctx, idemtest.Request{Method: method, Key: "k-" + method}.APIGatewayV2())
			if left := time.Until(deadline); left < 50*time.Millisecond {
				t.Errorf("the answer %d (%v) came with %v left of the invocation", out.StatusCode, err, left)
			}
		})
	}
}

// A caller that gets ErrStoreUnavailable can rely on it that the handler did not run
// (docs/errors.md, idempotency_store_unavailable).
//
// In an earlier version, two kinds of requests got this error after the handler had run: an
// unguarded one whose transaction could not be committed, and an optimistic one whose record could
// not be read.
func TestE1_StoreUnavailableSaysThatTheHandlerDidNotRun(t *testing.T) {
	t.Run("unguarded", func(t *testing.T) {
		b := newUserBank(t)
		store := idemtest.NewStore(b.store)
		store.Always(idemtest.Commit, idemtest.Refuse(lambdaidem.ReasonPermission))
		guard := lambdaidem.New(store, func(o *lambdaidem.Options) { o.Namespace, o.Observer = "bank", lambdaidem.Discard })
		called := 0
		call := lambdaidem.Call{Operation: "pay", Skip: true}
		_, err := lambdaidem.Do(idemtest.Invocation(t, 3*time.Second), guard, call, func(ctx context.Context) (string, error) {
			called++ // such as a call to another service
			b.add(ctx, "shop", 30)
			return "paid", nil
		})
		if called == 1 && errors.Is(err, lambdaidem.ErrStoreUnavailable) {
			t.Errorf("the handler ran, and the answer is %v", err)
		}
	})
	t.Run("optimistic", func(t *testing.T) {
		b := newUserBank(t)
		store := idemtest.NewStore(b.store)
		store.Always(idemtest.Get, idemtest.Refuse(lambdaidem.ReasonPermission))
		guard := lambdaidem.New(store, func(o *lambdaidem.Options) { o.Namespace, o.Observer, o.Optimistic = "bank", lambdaidem.Discard, true })
		called := 0
		_, err := lambdaidem.Do(idemtest.Invocation(t, 3*time.Second), guard, lambdaidem.Call{Operation: "pay", Key: "k"}, func(context.Context) (string, error) {
			called++
			return "", errors.New("no")
		})
		if called == 1 && errors.Is(err, lambdaidem.ErrStoreUnavailable) {
			t.Errorf("the handler ran, and the answer is %v", err)
		}
	})
}

// A guard under policy Rerun never returns ErrAttemptAbandoned for a record that was not acquired
// under Hold: this error means that an operator must decide, and that a retry is useless.
//
// In an earlier version, an attempt that failed open returned it for a released record with steps,
// although the next request would run.
func TestE4_ReleasedRecordWithStepsIsNotAbandonedUnderRerun(t *testing.T) {
	b := newUserBank(t)
	b.set(t, "shop", 0)
	store := idemtest.NewStore(b.store)
	guard := lambdaidem.New(store, func(o *lambdaidem.Options) { o.Namespace, o.Observer, o.FailOpen = "bank", lambdaidem.Discard, true })
	call := lambdaidem.Call{Operation: "pay", Key: "k"}
	_, _ = lambdaidem.Do(t.Context(), guard, call, func(ctx context.Context) (string, error) {
		_, err := lambdaidem.Step(ctx, "s", func(context.Context) (int, error) { return 1, nil })
		return "", errors.Join(err, errors.New("released"))
	})
	store.Next(idemtest.Acquire, idemtest.LoseRequest)
	_, err := lambdaidem.Do(t.Context(), guard, call, func(ctx context.Context) (string, error) {
		b.add(ctx, "shop", 30)
		return "paid", nil
	})
	if errors.Is(err, lambdaidem.ErrAttemptAbandoned) {
		t.Errorf("under Rerun: %v", err)
	}
	if got, err := lambdaidem.Do(t.Context(), guard, call, func(context.Context) (string, error) { return "paid", nil }); err != nil || got != "paid" {
		t.Errorf("the next: %q, %v", got, err)
	}
}

// A client uses a key twice, and the record can't be locked for the second request. Its handler
// charges a card without a lease, and its transaction then finds the record of the first request.
// The client must not be told to use a new key, which would charge the card again.
func TestX5_MismatchAfterARunAsksForNoNewKey(t *testing.T) {
	b := newUserBank(t, func(o *lambdaidem.Options) { o.FailOpen = true })
	b.set(t, "shop", 0)
	charged := 0
	pay := func(amount int) error {
		_, err := lambdaidem.Do(t.Context(), b.guard, lambdaidem.Call{Operation: "pay", Key: "k", Payload: amount}, func(ctx context.Context) (string, error) {
			charged += amount
			b.add(ctx, "shop", amount)
			return "paid", nil
		})
		return err
	}
	if err := pay(10); err != nil {
		t.Fatal(err)
	}
	b.wire.breakAll("PutItem")
	err := pay(30)
	b.wire.breakAll("")
	if refusal, ok := errors.AsType[*lambdaidem.Error](err); !ok || refusal.Code != lambdaidem.ErrPayloadMismatch || charged != 40 ||
		!strings.Contains(refusal.Detail, "Do not send it with a new key") {
		t.Errorf("after charges of %d, the client is told %v", charged, err)
	}
	if balance := b.balance(t, "shop"); balance != 10 {
		t.Errorf("the shop has %d", balance)
	}
}
