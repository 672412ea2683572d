package httpkey_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
	"github.com/lambdaidem/toolkit/propagate/httpkey"
)

// The handler charges a card through a service that accepts an Idempotency-Key. If it dies
// afterwards and runs again, the service receives the same key.
func ExampleRequest() {
	cards := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Header.Get("Idempotency-Key"))
	}))
	defer cards.Close()
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Namespace = "payments" })
	attempt := 0
	pay := func(ctx context.Context) (string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, cards.URL, strings.NewReader("100"))
		if err != nil {
			return "", err
		}
		if err := httpkey.Request(ctx, "charge", request); err != nil {
			return "", err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return "", err
		}
		_ = answer.Body.Close()
		if attempt++; attempt == 1 {
			return "", fmt.Errorf("the next call timed out")
		}
		return "paid", nil
	}
	for range 2 {
		answer, err := lambdaidem.Do(context.Background(), guard, lambdaidem.Call{Operation: "pay", Key: "order-1"}, pay)
		fmt.Printf("%q %v\n", answer, err)
	}
	// Output:
	// ac2ead08-567c-8128-9a00-fa10c0f0075a
	// "" the next call timed out
	// ac2ead08-567c-8128-9a00-fa10c0f0075a
	// "paid" <nil>
}
