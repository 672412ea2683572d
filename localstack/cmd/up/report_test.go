package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/emf"
)

// quiet is a reporter whose words nobody hears.
func quiet() *reporter { return &reporter{w: io.Discard, log: io.Discard} }

// A summary is of what came since the one before, and there is none if nothing did;
// the last one is of everything.
func TestReport_SaysWhatIsNew(t *testing.T) {
	said, write := io.Pipe()
	r := &reporter{w: write, log: io.Discard}
	log := r.seen.Log(io.Discard, false)
	metrics := emf.New(func(o *emf.Options) { o.Function, o.Writer = "Pay", log })
	happens := func(kind lambdaidem.Kind) { metrics.Observe(t.Context(), lambdaidem.Event{Kind: kind}) }

	ctx, stop := context.WithCancel(t.Context())
	ticks, ended := make(chan time.Time), make(chan struct{})
	go func() {
		r.follow(ctx, ticks)
		close(ended)
	}()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	hear := func() string {
		buffer := make([]byte, 1000)
		n, err := said.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		return string(buffer[:n])
	}

	happens(lambdaidem.EventNew)
	ticks <- at
	if got, want := hear(), "03:04:05: Pay 1 new\n"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	ticks <- at // nothing is said, or the next tick would wait for a reader for ever
	ticks <- at
	happens(lambdaidem.EventReplayed)
	ticks <- at
	if got, want := hear(), "03:04:05: Pay 1 replayed\n"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	happens(lambdaidem.EventNew)
	stop()
	<-ended
	var last bytes.Buffer
	r.w = &last
	r.end()
	if got, want := last.String(), "in all: Pay 2 new, 1 replayed\n"; got != want {
		t.Errorf("at the end it says %q, want %q", got, want)
	}
}

// What is no metric stays in the log, and metrics do if they are asked for.
func TestReport_LogIsWhatFunctionsSay(t *testing.T) {
	for _, documents := range []bool{false, true} {
		var log bytes.Buffer
		r := reporter{w: io.Discard, log: &log, documents: documents}
		out := r.seen.Log(r.log, r.documents)
		_, _ = fmt.Fprintln(out, "[Pay 7] hello")
		emf.New(func(o *emf.Options) { o.Function, o.Writer = "Pay", out }).Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.EventNew})
		if got := log.String(); !strings.HasPrefix(got, "[Pay 7] hello\n") || strings.Contains(got, "_aws") != documents {
			t.Errorf("with documents %v the log is %q", documents, got)
		}
	}
}
