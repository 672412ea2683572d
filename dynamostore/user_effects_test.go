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

// A stored step does not run again, so a write enlisted within it would be lost
// with the attempt that stored it: it is refused aloud.
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

// Nor is one taken, or changed, through a Tx that the handler asked for outside of
// the step. The step below is stored by an attempt that fails; the retry skips it.
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

// What is meant (E4: "Unknown: the same bytes again, or a consistent read that shows our
// token completed; absence proves nothing: 503"; X8): once a transaction of an
// optimistic attempt is on its way with unknown end, no answer says that nothing
// was written.
// It used to be otherwise: the second try of the transaction is refused by a condition. The
// record is absent, which proves nothing, but the answer is
// idempotency_condition_failed ("nothing was written") or what Else says. The
// first request arrives later and moves the money.
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

// The same under a lock and policy Hold (docs/errors.md, idempotency_condition_failed:
// "Nothing was written"): the attempt is uncertain, so its lease is kept, and the
// late transaction still finds it.
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

// The same for an attempt that failed open (E1: "unknown sends the same bytes again,
// else 503"). Here Else's verdict is given as final although it is not stored
// either: 402, and the money is moved.
func TestX5_FailedConditionAfterAnUnknownTransaction(t *testing.T) {
	b := newUserBank(t, func(o *lambdaidem.Options) { o.FailOpen = true })
	b.set(t, "alice", 0)
	b.wire.breakAll("PutItem") // no lock can be had
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

// What is meant (E5: "ctx is the handler's, or one derived from it"; K6, E6: RecordID and
// DownstreamKey are the same in every attempt at the record; G1): a Do that runs
// unguarded inside of a guarded handler leaves the outer record where it is, as an
// unguarded HTTP request inside does.
// It used to be otherwise: it hides the outer attempt. RecordID, DownstreamKey and Attempt are
// empty, a Step is not stored and runs again in the next attempt, and enlisted
// writes are committed apart from the record: once for each attempt.
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

// What is meant (E1, X4, L8; errors.md: "in time to answer"; Options.Reserve): a commit of an
// unguarded request that can't be made is given up in time for the 503, as a
// completion is.
// It used to be otherwise: it is tried until the invocation's very deadline: nothing is kept back
// (no keepBack in runAlone). Lambda ends the function, and no answer is given.
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

// What is meant (docs/errors.md: idempotency_store_unavailable, "did the handler run? no",
// and "it can't be told whether the operation was carried out before"; README: "the
// table can't be reached | 503 | does not run"): whoever reads this code may take it
// that the handler did not run.
// It used to be otherwise: an unguarded request whose transaction could not be made, and an
// optimistic one whose record could not be read, have run and answer this code.
func TestE1_StoreUnavailableSaysThatTheHandlerDidNotRun(t *testing.T) {
	t.Run("unguarded", func(t *testing.T) {
		b := newUserBank(t)
		store := idemtest.NewStore(b.store)
		store.Always(idemtest.Commit, idemtest.Refuse(lambdaidem.ReasonPermission))
		guard := lambdaidem.New(store, func(o *lambdaidem.Options) { o.Namespace, o.Observer = "bank", lambdaidem.Discard })
		called := 0
		call := lambdaidem.Call{Operation: "pay", Skip: true}
		_, err := lambdaidem.Do(idemtest.Invocation(t, 3*time.Second), guard, call, func(ctx context.Context) (string, error) {
			called++ // another service, say
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

// What is meant (L6, docs/errors.md: idempotency_attempt_abandoned is "under policy Hold"
// and "an operator decides"; a client must not retry it): a guard under Rerun never
// answers it for a record that no guard under Hold began.
// It used to be otherwise: an attempt that failed open and finds a released record with steps
// answers it, though the very next request just runs.
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
