package idemclient_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemclient"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// The response to a payment is lost on the way. The client sends the request again with the same
// key, and the guard replays the response without a second payment.
func Example() {
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.AnonymousCallers = true })
	payments := guard.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Println("the card is charged")
		_, _ = io.WriteString(w, "paid")
	}))
	lost := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !lost {
			lost = true
			payments.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler) // the connection breaks
		}
		payments.ServeHTTP(w, r)
	}))
	defer server.Close()

	host := strings.TrimPrefix(server.URL, "http://") // a loopback host; other hosts need https
	client := &http.Client{
		Timeout: 10 * time.Second,
		Transport: idemclient.New(nil, []string{host}, func(o *idemclient.Options) {
			o.InitialWait = 10 * time.Millisecond
			o.Observe = func(_ context.Context, a idemclient.Attempt) {
				fmt.Println("attempt", a.Number, "status", a.Status, "retry", a.Retry)
			}
		}),
	}
	answer, err := client.Post(server.URL+"/payments", "text/plain", strings.NewReader("100")) //nolint:noctx // without a context, to keep the example short
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	fmt.Printf("%s, replayed: %s, %v\n", body, answer.Header.Get("X-Idempotency-Replayed"), err)
	// Output:
	// the card is charged
	// attempt 1 status 0 retry true
	// attempt 2 status 200 retry false
	// paid, replayed: true, <nil>
}

// The key is derived from the order, so it outlives the process: the order is paid only once,
// whoever pays it and however often they try.
func ExampleWithKey() {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Header.Get("Idempotency-Key"))
	}))
	defer server.Close()
	client := &http.Client{Transport: idemclient.New(nil, []string{strings.TrimPrefix(server.URL, "http://")})}

	ctx := idemclient.WithKey(context.Background(), "order-4711-payment")
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader("100"))
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := client.Do(request)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = answer.Body.Close() }()
	// This key was sent:
	fmt.Println(answer.Request.Header.Get("Idempotency-Key"))
	// Output:
	// order-4711-payment
	// order-4711-payment
}

// The body of a response breaks off, so reading it fails. Sending the same key again gets the whole
// response, without a second payment.
func ExampleTransport_RoundTrip() {
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.AnonymousCallers = true })
	payments := guard.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Println("the card is charged")
		_, _ = io.WriteString(w, "paid")
	}))
	cut := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !cut {
			cut = true
			payments.ServeHTTP(httptest.NewRecorder(), r)
			w.Header().Set("Content-Length", "4")
			_, _ = io.WriteString(w, "pa")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		payments.ServeHTTP(w, r)
	}))
	defer server.Close()
	client := &http.Client{Transport: idemclient.New(nil, []string{strings.TrimPrefix(server.URL, "http://")})}

	pay := func(ctx context.Context) (key string) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader("100"))
		if err != nil {
			fmt.Println(err)
			return ""
		}
		answer, err := client.Do(request)
		if err != nil {
			fmt.Println(err)
			return ""
		}
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		fmt.Printf("%q %v\n", body, err)
		return answer.Request.Header.Get("Idempotency-Key")
	}
	key := pay(context.Background())
	pay(idemclient.WithKey(context.Background(), key))
	// Output:
	// the card is charged
	// "pa" unexpected EOF
	// "paid" <nil>
}
