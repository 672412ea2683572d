package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/bench/internal/table"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// largeAnswer is the size in bytes of the large answer, which is the most that Lambda can return.
const largeAnswer = 6 << 20

// largeResults has the measurements of an answer that is stored in parts: of the first requests,
// and of their replays, which were equal to the first responses byte for byte.
type largeResults struct {
	bytes       int
	first, next series
	cost        [2]cost // costs of the first requests, and of the replays
}

// measureLarge stores an answer of random bytes and replays it, the given number of times.
func (r *rig) measureLarge(ctx context.Context, bytes, times int) (*largeResults, error) {
	progress("an answer of %d bytes that don't compress: %d times", bytes, times)
	all := &largeResults{bytes: bytes}
	var took [2][][]time.Duration
	for range times {
		noise := make([]byte, bytes)
		_, _ = rand.Read(noise) // never fails
		body := base64.StdEncoding.EncodeToString(noise)
		h := lambdaidem.New(r.store).APIGatewayV2(func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
			return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusCreated, Headers: created.Headers, Body: body, IsBase64Encoded: true}, nil
		})
		e := request(rand.Text(), r.body)
		for i, replayed := range []bool{false, true} {
			var got events.APIGatewayV2HTTPResponse
			one, spent, err := block(ctx, []operation{func(ctx context.Context) (err error) {
				got, err = h(ctx, e)
				return err
			}}, 1, r.wires[oursSide])
			if err != nil {
				return nil, err
			}
			if err := same(got, body, replayed); err != nil {
				return nil, err
			}
			took[i] = append(took[i], one)
			all.cost[i] = all.cost[i].plus(spent)
		}
	}
	all.first, all.next = newSeries(took[0]), newSeries(took[1])
	return all, nil
}

// same returns an error unless got has the given body, byte for byte.
func same(got events.APIGatewayV2HTTPResponse, body string, replayed bool) error {
	_, marked := got.Headers["X-Idempotency-Replayed"]
	if got.StatusCode != http.StatusCreated || marked != replayed || !got.IsBase64Encoded || got.Body != body {
		return fmt.Errorf("the answer of %d bytes is %d, replayed %v, with %d bytes, equal %v",
			len(body), got.StatusCode, marked, len(got.Body), got.Body == body)
	}
	return nil
}

func (l *largeResults) table() table.Table {
	t := table.Table{{amount(l.bytes, "bytes") + " of noise", "times", "median", "least", "most", "requests", "sent", "received", "the same bytes"}}
	for i, s := range []series{l.first, l.next} {
		spent := l.cost[i]
		t = append(t, []string{
			[]string{"new", "replay"}[i], fmt.Sprint(len(s)), millis(s.quantile(0.5, nil)), millis(s.quantile(0, nil)), millis(s.quantile(1, nil)),
			fmt.Sprintf("%.2f", spent.each(float64(spent.trips))), megabytes(spent.each(float64(spent.sent))), megabytes(spent.each(float64(spent.received))),
			"yes", // otherwise there would be no results
		})
	}
	return t
}

func millis(d time.Duration) string { return fmt.Sprintf("%.0f ms", d.Seconds()*1e3) }

func megabytes(n float64) string { return fmt.Sprintf("%.2f MB", n/(1<<20)) }
