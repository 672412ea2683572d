package metrics_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/emf"
	"github.com/lambdaidem/toolkit/localstack/metrics"
)

// The function writes a line of text, and documents for CloudWatch.
func Example() {
	var seen metrics.Collector
	log := seen.Log(os.Stdout, false)

	_, _ = fmt.Fprintln(log, "hello")
	observer := emf.New(func(o *emf.Options) { o.Service, o.Function, o.Writer = "shop", "Payments", log })
	for _, kind := range []lambdaidem.Kind{lambdaidem.EventNew, lambdaidem.EventReplayed} {
		observer.Observe(context.Background(), lambdaidem.Event{Kind: kind, Duration: 9 * time.Millisecond, Store: 5 * time.Millisecond})
	}
	fmt.Println(metrics.Summary(seen.Take()))
	// Output:
	// hello
	// Payments 1 new, 1 replayed; duplicates 50 %; takeovers 0; store p50 5.0 ms
}
