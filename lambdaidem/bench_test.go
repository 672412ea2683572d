package lambdaidem_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// jsonBody returns a JSON object of about n bytes, as an application might send it.
func jsonBody(n int) string {
	var b strings.Builder
	b.WriteString(`{"currency":"EUR","lines":[`)
	for i := 0; b.Len() < n-60; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"sku":"article-%05d","amount":%d,"note":null}`, i, i*7)
	}
	b.WriteString(`]}`)
	return b.String()
}

// benchGuard returns a guarded handler that does nothing.
func benchGuard(clock *ticker) handler {
	return benchHandler(clock, `{"id":"payment-1","state":"paid"}`)
}

func benchHandler(clock *ticker, answer string, optFns ...func(*lambdaidem.Options)) handler {
	g := lambdaidem.New(memstore.New(), append(optFns, clock.option, func(o *lambdaidem.Options) { o.Namespace, o.Observer = "bench", lambdaidem.Discard })...)
	return g.APIGatewayV2(func(context.Context, request) (response, error) {
		return response{StatusCode: 201, Headers: map[string]string{"Content-Type": "application/json"}, Body: answer}, nil
	})
}

// benchCases returns the calls to measure. Each function returns the i-th request. Time passes with
// each new key, so that the store drops old records. Without that, the benchmark would measure the
// garbage collector's work on a growing heap.
func benchCases(body string, clock *ticker) map[string]func(i int) request {
	other := post("key-1", strings.Replace(body, "EUR", "USD", 1))
	again := post("key-1", body)
	return map[string]func(i int) request{
		"new": func(i int) request {
			clock.advance(time.Hour)
			in := again
			in.Headers = map[string]string{"content-type": "application/json", "idempotency-key": "new-" + strconv.Itoa(i)}
			return in
		},
		"replay":   func(int) request { return again },
		"mismatch": func(int) request { return other },
	}
}

func benchSend(b testing.TB, h handler, in request, want int) {
	b.Helper()
	out, err := h(b.Context(), in)
	if err != nil || out.StatusCode != want {
		b.Fatalf("the answer is %d %s, %v", out.StatusCode, out.Body, err)
	}
}

var benchStatus = map[string]int{"new": 201, "replay": 201, "mismatch": 422}

// BenchmarkGuard measures the guard alone, with a 1 KB JSON body and an in-memory store.
func BenchmarkGuard(b *testing.B) {
	body, clock := jsonBody(1<<10), newTicker()
	for name, next := range benchCases(body, clock) {
		b.Run(name, func(b *testing.B) {
			h := benchGuard(clock)
			benchSend(b, h, post("key-1", body), 201)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				benchSend(b, h, next(i), benchStatus[name])
				i++
			}
		})
	}
}

// BenchmarkCachedReplay measures a replay of a 1 KB answer from the cache (whole), and what every
// replay needs at least (needed): the request's fingerprint, the hash for the record's id, and
// decoding the answer. The cost of reading and writing the events is part of whole, and is also
// reported separately (events). The measurements alternate, so that a busy machine affects all of
// them. The results are medians of batches.
func BenchmarkCachedReplay(b *testing.B) {
	body := jsonBody(1 << 10)
	in := post("key-1", body)
	h := benchHandler(newTicker(), body, roomy)
	benchSend(b, h, in, 201)
	needed, events := lambdaidem.BareReplay(in, 201, body)
	ctx := b.Context()
	parts := map[string]func(){"needed": needed, "events": events, "whole": func() {
		if out, err := h(ctx, in); err != nil || out.StatusCode != 201 {
			b.Fatal(out, err)
		}
	}}
	const batch = 50
	took := map[string][]float64{}
	for b.Loop() {
		one := map[string]float64{}
		for _, name := range []string{"needed", "events", "whole"} {
			began := time.Now()
			for range batch {
				parts[name]()
			}
			one[name] = float64(time.Since(began)) / batch
			took[name] = append(took[name], one[name])
		}
		took["beyond"] = append(took["beyond"], one["whole"]-one["needed"])
		took["own"] = append(took["own"], one["whole"]-one["needed"]-one["events"])
	}
	for name, values := range took {
		slices.Sort(values)
		b.ReportMetric(values[len(values)/2], "ns-"+name)
	}
}

// BenchmarkBodySize shows that the cost grows no faster than the size of the body: MB/s must not
// fall.
func BenchmarkBodySize(b *testing.B) {
	for _, n := range []int{1 << 10, 8 << 10, 64 << 10, 512 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKB", n>>10), func(b *testing.B) {
			h, in := benchGuard(newTicker()), post("key-1", jsonBody(n))
			benchSend(b, h, in, 201)
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				benchSend(b, h, in, 201)
			}
		})
	}
}

// BenchmarkAdversarial shows that per byte, no body costs more than a constant factor times the
// cost of a plain one.
func BenchmarkAdversarial(b *testing.B) {
	for name, body := range adversarial(64 << 10) {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			h, in := benchGuard(newTicker()), post("key-1", body)
			benchSend(b, h, in, 201)
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				benchSend(b, h, in, 201)
			}
		})
	}
}

// BenchmarkMessages measures what the engine costs for each of 10,000 SQS messages of 1 KB
// (beyond), compared with a plain loop that calls Do for each message (loop). The two measurements
// alternate and use separate stores. The results are medians.
func BenchmarkMessages(b *testing.B) {
	const n = 10_000
	body := jsonBody(1 << 10)
	event := events.SQSEvent{Records: make([]events.SQSMessage, n)}
	for i := range event.Records {
		event.Records[i] = events.SQSMessage{MessageId: fmt.Sprintf("059f36b4-87a3-44ab-83d2-%012d", i), Body: body, EventSourceARN: "arn:aws:sqs:eu-west-1:111122223333:orders"}
	}
	handle := func(context.Context, events.SQSMessage) error { return nil }
	guard := func() *lambdaidem.Guard {
		return lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Namespace, o.Observer = "bench", lambdaidem.Discard })
	}
	ctx := b.Context()
	timed := func(do func()) float64 {
		runtime.GC()
		began := time.Now()
		do()
		return float64(time.Since(began)) / n
	}
	took := map[string][]float64{}
	for b.Loop() {
		engine := timed(func() {
			if out, err := guard().SQS(handle)(ctx, event); err != nil || len(out.BatchItemFailures) > 0 {
				b.Fatal(out, err)
			}
		})
		loop := timed(func() {
			g := guard()
			for _, m := range event.Records {
				if _, err := lambdaidem.Do(ctx, g, lambdaidem.Call{Operation: m.EventSourceARN, Key: m.MessageId, Payload: json.RawMessage(m.Body)}, func(ctx context.Context) (struct{}, error) {
					return struct{}{}, handle(ctx, m)
				}); err != nil {
					b.Fatal(err)
				}
			}
		})
		took["engine"], took["loop"], took["beyond"] = append(took["engine"], engine), append(took["loop"], loop), append(took["beyond"], engine-loop)
	}
	for name, values := range took {
		slices.Sort(values)
		b.ReportMetric(values[len(values)/2], "ns-"+name)
	}
}
