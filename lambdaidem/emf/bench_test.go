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

// full is an event with all that an ordinary one has.
var full = lambdaidem.Event{Kind: lambdaidem.EventNew, RecordID: "lambdaidem#x", Scope: "s", Route: "POST /payments/{id}", Template: "POST /payments/{id}", Caller: "c", Key: "k",
	Attempt: 1, Duration: 12345678, Handler: 7654321, Store: time.Millisecond, Err: errors.New("e")}

// At most 5 µs and 10 allocations for each event.
func BenchmarkObserve(b *testing.B) {
	for name, open := range map[string]func() (io.Writer, error){
		"discard": func() (io.Writer, error) { return io.Discard, nil },
		"file":    func() (io.Writer, error) { return os.OpenFile(os.DevNull, os.O_WRONLY, 0) }, // with a system call, as standard output has
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

// A line is made in one buffer that is used again.
func TestObserve_AllocationsAreBounded(t *testing.T) {
	o := emf.New(func(o *emf.Options) { o.Writer, o.Records = io.Discard, true })
	if n := testing.AllocsPerRun(200, func() { o.Observe(t.Context(), full) }); n > 0 {
		t.Errorf("it takes %.0f allocations", n)
	}
}
