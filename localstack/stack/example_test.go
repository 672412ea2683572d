package stack_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"

	"github.com/lambdaidem/toolkit/localstack/stack"
)

// The example sends the same payment twice. The second answer is a replay.
func ExampleStart() {
	ctx := context.Background()
	s, err := stack.Start(ctx, stack.Options{Progress: io.Discard, FunctionLog: io.Discard})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = s.Stop() }()
	if err := s.OpenAccount(ctx, "alice", "EUR", 10_000); err != nil {
		log.Panic(err)
	}

	for range 2 {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/payments", strings.NewReader(`{"amount":1250,"currency":"EUR"}`))
		if err != nil {
			log.Panic(err)
		}
		r.Header.Set("Authorization", "Bearer "+stack.Token("alice"))
		r.Header.Set("Idempotency-Key", "order-1")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			log.Panic(err)
		}
		_ = resp.Body.Close()
		fmt.Println(resp.StatusCode, "replayed:", resp.Header.Get("X-Idempotency-Replayed") == "true")
	}
	// Output:
	// 201 replayed: false
	// 201 replayed: true
}
