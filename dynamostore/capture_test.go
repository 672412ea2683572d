package dynamostore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

type payment struct {
	ID     string `dynamodbav:"id"`
	Amount int    `dynamodbav:"amount"`
}

// pay is the code of a handler under test. It takes money from an account and writes a payment:
// both or neither.
func pay(ctx context.Context, p payment) (payment, error) {
	tx := dynamostore.Enlist(ctx)
	tx.PutValue("payment", "payments", p)
	tx.UpdateValue("debit", "accounts", map[string]string{"id": "alice"}, "SET balance = balance - :amount", dynamostore.Args{":amount": p.Amount}).
		If("balance >= :amount", nil).
		ElseFunc(func(f *dynamostore.ConditionFailed) error {
			if f.Absent() {
				return lambdaidem.Reject(404, "no_account", "There is no such account.")
			}
			return lambdaidem.Reject(402, "insufficient_funds", "The account does not hold that much.")
		})
	return p, nil
}

func ExampleCapture() {
	ctx, captured := dynamostore.Capture(context.Background())
	if _, err := pay(ctx, payment{"p1", 30}); err != nil {
		fmt.Println(err)
	}
	writes, err := captured.Writes()
	for _, w := range writes {
		fmt.Println(w.Name, "to", w.Table)
	}
	fmt.Println(err)
	poor, _ := attributevalue.MarshalMap(map[string]any{"id": "alice", "balance": 5})
	fmt.Println(captured.Fail("debit", poor))
	fmt.Println(captured.Fail("debit", nil))
	// Output:
	// payment to payments
	// debit to accounts
	// <nil>
	// insufficient_funds: The account does not hold that much.
	// no_account: There is no such account.
}

func TestCaptureServesAHandlerWithoutTransactions(t *testing.T) {
	guard := lambdaidem.New(memstore.New())
	ctx, captured := dynamostore.Capture(t.Context())
	for range 2 {
		if _, err := lambdaidem.Do(ctx, guard, lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (payment, error) {
			return pay(ctx, payment{"p1", 30})
		}); err != nil {
			t.Fatal(err)
		}
	}
	writes, err := captured.Writes()
	if err != nil || len(writes) != 2 || writes[1].Action.Update == nil || writes[0].Action.Put.Item["amount"].(*types.AttributeValueMemberN).Value != "30" {
		t.Errorf("%+v, %v", writes, err)
	}
}

func TestCaptureServesTwice(t *testing.T) {
	guard := lambdaidem.New(memstore.New())
	guarded := lambdaidem.Handler(guard, "pay", func(_ context.Context, p payment) (string, error) { return p.ID, nil }, pay)
	var calls []*dynamostore.Captured
	idemtest.Twice(t, func(ctx context.Context, p payment) (payment, error) {
		ctx, captured := dynamostore.Capture(ctx)
		calls = append(calls, captured)
		return guarded(ctx, p)
	}, payment{"p1", 30})
	first, err := calls[0].Writes()
	if err != nil || len(first) != 2 || first[0].Name != "payment" || first[1].Name != "debit" {
		t.Errorf("the first call enlisted %+v, %v", first, err)
	}
	if again, err := calls[1].Writes(); err != nil || len(again) != 0 {
		t.Errorf("the retry enlisted %+v, %v", again, err)
	}
}

// Without Capture, the panic says what a test can do instead.
func TestEnlistSaysWhatATestCanDo(t *testing.T) {
	defer func() {
		if v := fmt.Sprint(recover()); !strings.Contains(v, "*memstore.Store") || !strings.Contains(v, "in a test, use dynamostore.Capture") {
			t.Errorf("the panic is %s", v)
		}
	}()
	_, _ = lambdaidem.Do(t.Context(), lambdaidem.New(memstore.New()), lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (payment, error) {
		return pay(ctx, payment{"p1", 30})
	})
}

// In a unit test, Captured reports what would keep the writes from being made.
func TestE3_CaptureTellsOfWhatCantBeWritten(t *testing.T) {
	ctx, captured := dynamostore.Capture(t.Context())
	dynamostore.Enlist(ctx).DeleteValue("one", "payments", map[string]string{"id": "p1"})
	dynamostore.Enlist(ctx).PutValue("two", "payments", payment{"p1", 1})
	_, err := captured.Writes()
	if failed := (*dynamostore.WriteError)(nil); !errors.As(err, &failed) || failed.Write != "two" {
		t.Errorf("got %v", err)
	}
	ctx, captured = dynamostore.Capture(t.Context())
	dynamostore.Enlist(ctx).PutValue("", "payments", payment{"p1", 1})
	if _, err := captured.Writes(); err == nil || !strings.Contains(err.Error(), "no name") {
		t.Errorf("got %v", err)
	}
	defer func() {
		if v := recover(); v == nil {
			t.Error("a write that is not there fails in silence")
		}
	}()
	_ = captured.Fail("none", nil)
}

// In a unit test, Captured reports an expression that DynamoDB would refuse.
func TestE3_CaptureRefusesInvalidExpressions(t *testing.T) {
	key := map[string]string{"id": "alice"}
	for name, c := range map[string]struct {
		enlist func(*dynamostore.Tx)
		want   string // "": the expression is valid
	}{
		"valid": {func(tx *dynamostore.Tx) {
			tx.UpdateValue("w", "accounts", key, "SET balance = balance - :n", dynamostore.Args{":n": 1}).If("balance >= :n AND attribute_exists(id)", nil)
		}, ""},
		"a table by its ARN": {func(tx *dynamostore.Tx) {
			tx.DeleteValue("w", "arn:aws:dynamodb:eu-west-1:123456789012:table/accounts", key).If("attribute_exists(id)", nil)
		}, ""},
		"a condition's syntax": {func(tx *dynamostore.Tx) { tx.PutValue("w", "accounts", key).If("balance >=", nil) }, "Syntax error"},
		"an update's syntax": {func(tx *dynamostore.Tx) {
			tx.UpdateValue("w", "accounts", key, "balance = :n", dynamostore.Args{":n": 1})
		}, "Syntax error"},
		"a reserved word":    {func(tx *dynamostore.Tx) { tx.DeleteValue("w", "accounts", key).If("attribute_exists(name)", nil) }, "reserved keyword"},
		"no such function":   {func(tx *dynamostore.Tx) { tx.CheckValue("w", "accounts", key, "exists(id)", nil) }, "Invalid function name"},
		"an undefined value": {func(tx *dynamostore.Tx) { tx.PutValue("w", "accounts", key).If("balance > :n", nil) }, ":n"},
		"an unused value": {func(tx *dynamostore.Tx) {
			tx.PutValue("w", "accounts", key).If("attribute_not_exists(id)", dynamostore.Args{":n": 1})
		}, "unused"},
		"a check of nothing": {func(tx *dynamostore.Tx) { tx.CheckValue("w", "accounts", key, "", nil) }, "its condition is empty"},
	} {
		ctx, captured := dynamostore.Capture(t.Context())
		dynamostore.Enlist(ctx).PutValue("well", "payments", payment{"p1", 1})
		c.enlist(dynamostore.Enlist(ctx))
		writes, err := captured.Writes()
		if len(writes) != 2 {
			t.Errorf("%s: %d writes", name, len(writes))
		}
		failed, ok := errors.AsType[*dynamostore.WriteError](err)
		if c.want == "" && err != nil || c.want != "" && (!ok || failed.Write != "w" || !strings.Contains(failed.Error(), c.want)) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}
