package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

type checkout struct{ CustomerID, OrderID string }

var checkoutGuard = lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) {
	o.Namespace, o.Observer = "checkout", lambdaidem.Discard
})

func pay(context.Context) (string, error) {
	fmt.Println("the card is charged")
	return "payment-1", nil
}

func ship(ctx context.Context, payment string) (string, error) {
	if lambdaidem.Attempt(ctx) == 1 {
		return "", errors.New("the shelf is empty")
	}
	return "parcel for " + payment, nil
}

func placeOrder(ctx context.Context, in checkout) (string, error) {
	payment, err := lambdaidem.Do(ctx, checkoutGuard, lambdaidem.Call{
		Operation: "charge",
		Principal: in.CustomerID, // or one customer's order could get another's payment
		Key:       in.OrderID,
		Payload:   in, // an order that has changed is refused, and is not paid a second time
	}, pay)
	if errors.Is(err, lambdaidem.ErrRetryable) {
		return "", lambdaidem.Retryable(err) // placeOrder has had no effect of its own yet
	}
	if err != nil {
		return "", err
	}
	return ship(ctx, payment)
}

// A guarded call inside a guarded handler has a record of its own. When the handler runs
// again, the call returns its first result.
func ExampleDo_inside() {
	h := lambdaidem.Handler(checkoutGuard, "order", func(_ context.Context, in checkout) (string, error) { return in.OrderID, nil }, placeOrder)
	for range 2 {
		fmt.Println(h(context.Background(), checkout{CustomerID: "customer-1", OrderID: "order-1"}))
	}
	// Output:
	// the card is charged
	//  the shelf is empty
	// parcel for payment-1 <nil>
}
