package emf_test

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/emf"
)

// full is an event with every field set that an ordinary event has.
var full = lambdaidem.Event{Kind: lambdaidem.EventNew, RecordID: "lambdaidem#x", Scope: "s", Route: "POST /payments/{id}", Template: "POST /payments/{id}", Caller: "c", Key: "k",
	Attempt: 1, Duration: 12345678, Handler: 7654321, Store: time.Millisecond, Err: errors.New("e")}

// The aim is at most 5 µs for each event. TestObserve_AllocationsAreBounded checks the allocations.
func BenchmarkObserve(b *testing.B) {
	for name, open := range map[string]func() (io.Writer, error){
		"discard": func() (io.Writer, error) { return io.Discard, nil },
		"file":    func() (io.Writer, error) { return os.OpenFile(os.DevNull, os.O_WRONLY, 0) }, // each line is one system call, as on standard output
	} {
		b.Run(name, func(b *testing.B) {
			w, err := open()
			if err != nil {
				b.Fatal(err)
			}
			o := emf.New(func(o *emf.Options) { o.Writer = w })
			b.ReportAllocs()
			for b.Loop() {
				o.Observe(b.Context(), full)
			}
		})
	}
}

// TestObserve_AllocationsAreBounded checks that Observe allocates nothing: it reuses one buffer for
// all lines.
func TestObserve_AllocationsAreBounded(t *testing.T) {
	o := emf.New(func(o *emf.Options) { o.Writer, o.Records = io.Discard, true })
	if n := testing.AllocsPerRun(200, func() { o.Observe(t.Context(), full) }); n > 0 {
		t.Errorf("it takes %.0f allocations", n)
	}
}
