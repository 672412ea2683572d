package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/emf"
)

// quiet is a reporter whose words nobody hears.
func quiet() *reporter { return &reporter{w: io.Discard, log: io.Discard} }

// A summary is of what came since the one before, and there is none if nothing did;
// the last one is of everything.
func TestReport_SaysWhatIsNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		r := &reporter{w: &said, log: io.Discard}
		counts := emf.New(func(o *emf.Options) { o.Function, o.Writer = "Pay", r.seen.Log(io.Discard, false) })
		happens := func(kind lambdaidem.Kind) { counts.Observe(t.Context(), lambdaidem.Event{Kind: kind}) }
		ctx, stop := context.WithCancel(t.Context())
		ticks := make(chan time.Time)
		go r.follow(ctx, ticks)
		// hears sends a tick, and expects what is said then.
		hears := func(want string) {
			t.Helper()
			said.Reset()
			ticks <- time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			synctest.Wait()
			if got := said.String(); got != want {
				t.Errorf("it says %q, want %q", got, want)
			}
		}

		hears("")
		happens(lambdaidem.EventNew)
		hears("03:04:05: Pay 1 new\n")
		hears("")
		happens(lambdaidem.EventReplayed)
		hears("03:04:05: Pay 1 replayed\n")
		happens(lambdaidem.EventNew)
		stop()
		synctest.Wait()
		said.Reset()
		r.end()
		if got, want := said.String(), "in all: Pay 2 new, 1 replayed\n"; got != want {
			t.Errorf("at the end it says %q, want %q", got, want)
		}
	})
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
