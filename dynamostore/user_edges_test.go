package dynamostore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
)

// An attempt that leaves a step running is not released, because the step may still have an effect.
//
// In an earlier version, the attempt was released if its transaction was rejected. A retry then ran
// the step again while the first run of it had not ended.
func TestE5_StepLeftRunningAndARejectedTransaction(t *testing.T) {
	for name, own := range map[string]error{"own error": errors.New("no"), "rejected": nil} {
		t.Run(name, func(t *testing.T) {
			b := newUserBank(t)
			b.set(t, "alice", 0)
			charging, stop, stopped := make(chan bool, 9), make(chan bool), make(chan bool, 9)
			pay := func() error {
				_, err := lambdaidem.Do(t.Context(), b.guard, lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (string, error) {
					b.add(ctx, "alice", -30)
					began := make(chan bool)
					go func() {
						_, _ = lambdaidem.Step(ctx, "charge", func(context.Context) (string, error) {
							charging <- true
							close(began)
							<-stop
							return "charged", nil
						})
						stopped <- true
					}()
					<-began
					return "paid", own
				})
				return err
			}
			_ = pay()
			again := pay()
			close(stop)
			for range len(charging) {
				<-stopped
			}
			if n := len(charging); n != 1 {
				t.Errorf("the step ran %d times, side by side; the second call got %v, want %v", n, again, lambdaidem.ErrInProgress)
			}
		})
	}
}

// userValue panics when it is encoded if bad is true.
type userValue struct{ bad bool }

func (v userValue) MarshalJSON() ([]byte, error) {
	if v.bad {
		panic("userValue: no JSON")
	}
	return json.Marshal("good")
}

func (v *userValue) UnmarshalJSON([]byte) error { return nil }

// No answer, error or panic is returned before the record was read. So the loser of a race replays
// the winner's answer even if encoding its own answer panics.
//
// In an earlier version, a panic while the answer was encoded, or in Options.Outcome, reached the
// caller without a read of the record.
func TestE4_PanicOfAnEncodingConsultsTheRecord(t *testing.T) {
	b := newUserBank(t, func(o *lambdaidem.Options) { o.Optimistic = true })
	call := lambdaidem.Call{Operation: "pay", Key: "k"}
	defer func() {
		if v := recover(); v != nil {
			t.Errorf("the record is completed, and the caller gets the panic %v", v)
		}
	}()
	_, err := lambdaidem.Do(t.Context(), b.guard, call, func(context.Context) (userValue, error) {
		if _, err := lambdaidem.Do(t.Context(), b.guard, call, func(context.Context) (userValue, error) { return userValue{}, nil }); err != nil {
			t.Error(err)
		}
		return userValue{bad: true}, nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A panic in ElseFunc releases the record, like a panic of the handler: nothing was written.
//
// In an earlier version, the attempt kept its lease, and retries got 409 until the lease ended.
func TestX2_PanicInElseFuncReleases(t *testing.T) {
	b := newUserBank(t)
	b.set(t, "alice", 0)
	runs := 0
	pay := func() (err error) {
		defer func() { _ = recover() }()
		_, err = lambdaidem.Do(t.Context(), b.guard, lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (string, error) {
			runs++
			b.add(ctx, "alice", -30).ElseFunc(func(*dynamostore.ConditionFailed) error { panic("in ElseFunc") })
			return "paid", nil
		})
		return err
	}
	_ = pay()
	if err := pay(); runs != 2 {
		t.Errorf("nothing was written, and a retry gets %v", err)
	}
}

// The invoker of a typed handler sees the code and the detail of an error, but no internals.
//
// In an earlier version, the invoker saw the whole error of a rejected transaction: names of tables
// and writes, DynamoDB's text, and request ids. Over HTTP it did not.
func TestX5_HandlerShowsNoInternalsOfARejectedTransaction(t *testing.T) {
	b := newUserBank(t)
	b.set(t, "alice", 0)
	key := func(_ context.Context, key string) (string, error) { return key, nil }
	for name, condition := range map[string]string{"condition failed": "balance >= :least", "write invalid": "balance >> :least"} {
		handler := lambdaidem.Handler(b.guard, "pay", key, func(ctx context.Context, _ string) (string, error) {
			dynamostore.Enlist(ctx).UpdateValue("debit", b.accounts, userKey{"alice"}, "SET balance = balance - :least", dynamostore.Args{":least": 30}).If(condition, nil)
			return "paid", nil
		})
		_, err := handler(t.Context(), name)
		if err == nil || strings.Contains(err.Error(), b.accounts) || strings.Contains(err.Error(), "TransactWriteItems") {
			t.Errorf("%s: the invoker sees %v", name, err)
		}
	}
}

// A value that can't be encoded is refused at once with ErrWriteInvalid, and the error names the
// write.
//
// In an earlier version, a chan, a func, or a pointer to a nil interface was not detected, because
// attributevalue encodes it as nothing and returns no error. The request was sent three times with
// a null in it, and the key was blocked until the lease ended.
func TestE3_ValueThatEncodesToNothing(t *testing.T) {
	b := newUserBank(t)
	_, err := lambdaidem.Do(idemtest.Invocation(t, 3*time.Second), b.guard, lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (string, error) {
		dynamostore.Enlist(ctx).UpdateValue("u", b.accounts, userKey{"alice"}, "SET a = :a", dynamostore.Args{":a": make(chan int)})
		return "paid", nil
	})
	if !errors.Is(err, lambdaidem.ErrWriteInvalid) {
		t.Errorf("got %v", err)
	}
}

// A key that is a string is refused, and the error names the write.
//
// In an earlier version, attributevalue.MarshalMap made an empty map of it, without an error. One
// such write got DynamoDB's error, without a name. Two such writes were said to be to the same
// item.
func TestE3_KeyThatIsNoMap(t *testing.T) {
	b := newUserBank(t)
	for i, keys := range [][]string{{"alice"}, {"alice", "bob"}} {
		_, err := lambdaidem.Do(t.Context(), b.guard, lambdaidem.Call{Operation: "pay", Key: fmt.Sprint("k", i)}, func(ctx context.Context) (string, error) {
			for _, key := range keys {
				dynamostore.Enlist(ctx).UpdateValue("update of "+key, b.accounts, key, "SET a = :a", dynamostore.Args{":a": 1})
			}
			return "paid", nil
		})
		if !errors.Is(err, lambdaidem.ErrWriteInvalid) || !strings.Contains(err.Error(), "update of alice") || strings.Contains(err.Error(), "same item") {
			t.Errorf("keys %v: %v", keys, err)
		}
	}
}

// Every item that DynamoDB can store can be enlisted.
//
// In an earlier version, sizeOfNumber counted a decimal point, an exponent and zeros after the
// point as digits. So an item of half the maximum size was refused as too large.
func TestE3_ItemOfSmallNumbers(t *testing.T) {
	b := newUserBank(t)
	values := make([]float64, 70_000)
	for i := range values {
		values[i] = 1e-7
	}
	series := map[string]any{"id": "series", "values": values}
	item, err := attributevalue.MarshalMap(series)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &b.accounts, Item: item}); err != nil {
		t.Fatal(err)
	}
	_, err = lambdaidem.Do(t.Context(), b.guard, lambdaidem.Call{Operation: "put", Key: "k"}, func(ctx context.Context) (string, error) {
		dynamostore.Enlist(ctx).PutValue("series", b.accounts, series)
		return "put", nil
	})
	if errors.Is(err, lambdaidem.ErrWriteInvalid) {
		t.Errorf("PutItem writes it, and Enlist says: %v", err)
	}
}

// If an error asks for several outcomes, the most careful one counts. An uncertain call is not
// stored as succeeded.
//
// In an earlier version, an Answer anywhere in the error's tree took precedence over every other
// error in it. The call was stored as succeeded, its enlisted writes were made, and the other error
// was lost.
func TestX2_AnswerDoesNotHideAMark(t *testing.T) {
	b := newUserBank(t)
	b.set(t, "shop", 0)
	for name, end := range map[string]error{
		"marked": lambdaidem.Uncertain(lambdaidem.Answer("done")),
		"joined": errors.Join(lambdaidem.Answer("done"), lambdaidem.Uncertain(errors.New("the card network timed out"))),
	} {
		got, err := lambdaidem.Do(t.Context(), b.guard, lambdaidem.Call{Operation: "pay", Key: name}, func(ctx context.Context) (string, error) {
			b.add(ctx, "shop", 30)
			return "", end
		})
		if err == nil {
			t.Errorf("%s: the handler said that it is uncertain, and the answer %q is stored; the balance is %d", name, got, b.balance(t, "shop"))
		}
	}
}
