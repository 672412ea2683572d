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

// What is meant (E5, X4, as for a handler that returns an error): an attempt that leaves a
// step running is not released, since it would not be true that nothing happens.
// It used to be otherwise: where the release comes from a rejected transaction instead of the
// handler's own error, the step that is still running is forgotten: the record is
// released, and a retry runs the step beside the first one.
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

// userValue has no JSON if it is bad: to encode it panics.
type userValue struct{ bad bool }

func (v userValue) MarshalJSON() ([]byte, error) {
	if v.bad {
		panic("userValue: no JSON")
	}
	return json.Marshal("good")
}

func (v *userValue) UnmarshalJSON([]byte) error { return nil }

// What is meant (E4: "No answer, error or panic leaves before the record was consulted"):
// the loser of a race replays the winner's answer, if its own panics too.
// It used to be otherwise: a panic of the encoding of its result (or of Options.Outcome) leaves
// without a look at the record; one of the handler does not.
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

// What is meant (X2, E2: what ElseFunc says is taken "as if the handler had returned it";
// nothing was written): a panic in it releases, as a handler's does.
// It used to be otherwise: the lease is kept, so that retries get 409 until its end: 60 s, or the
// function's timeout.
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

// What is meant (X5: "the client sees no internals"; Handler: "reported … without what the
// store said"): the invoker of a typed handler sees the code and the detail.
// It used to be otherwise: what the guard makes of a rejected transaction goes out whole: names of
// tables and writes, DynamoDB's words and request ids. Over HTTP it does not.
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

// What is meant (docs/errors.md: idempotency_write_invalid is for "a value that can't be
// encoded": nothing was written): 500 at once, which names the write.
// It used to be otherwise: attributevalue encodes a chan, a func and a nil interface's pointer as
// nothing, without an error; bind does not look, and a request with a null in it
// is sent, three times. The answer is 503 idempotency_outcome_unknown, and the key
// stays closed until the lease is over.
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

// What is meant (UpdateValue: key is "a struct or a map of its key attributes"; errors.md:
// "The log names the write"): a key that is a text is refused in words.
// It used to be otherwise: attributevalue.MarshalMap makes an empty map of it without an error. One
// such write gets DynamoDB's words, with no name; two are "to the same item",
// though they name two.
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

// What is meant (E3): what DynamoDB keeps can be enlisted.
// It used to be otherwise: sizeOfNumber counts a decimal point, an exponent and the zeros after the
// point as digits, so that an item is refused as over 400 KB which has half of
// that, and which a PutItem of the same item writes.
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

// What is meant (X2: "Of several marks the most careful counts", and an error without a mark
// that is joined to one is not lost): what is uncertain too is not stored as done.
// It used to be otherwise: an Answer anywhere in the error's tree wins over every mark and every other
// error: the call is stored as succeeded, its enlisted writes are made, and the
// other error is dropped in silence.
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
