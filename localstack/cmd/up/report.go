package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/lambdaidem/toolkit/localstack/metrics"
)

// pause is how long there is at least between two summaries of the metrics.
const pause = 5 * time.Second

// reporter takes metrics out of the functions' log, and prints summaries of them.
type reporter struct {
	w         io.Writer
	log       io.Writer // gets the rest of the log
	documents bool      // and what the metrics are read from, too

	seen    metrics.Collector
	overall metrics.Totals
}

// follow prints a summary at each tick before which something happened, until ctx
// ends.
func (r *reporter) follow(ctx context.Context, ticks <-chan time.Time) {
	for {
		select {
		case now := <-ticks:
			r.say(now.Format(time.TimeOnly), r.take())
		case <-ctx.Done():
			return
		}
	}
}

// end prints a summary of everything, when the functions have ended.
func (r *reporter) end() {
	_ = r.take()
	r.say("in all", &r.overall)
}

// take returns what came since the last one, and adds it to everything.
func (r *reporter) take() *metrics.Totals {
	since := r.seen.Take()
	r.overall.Merge(since)
	return since
}

func (r *reporter) say(when string, what *metrics.Totals) {
	if text := metrics.Summary(what); text != "" {
		_, _ = fmt.Fprintf(r.w, "%s: %s\n", when, text)
	}
}
