package main

import (
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/localstack/template"
)

// The story waits for leases, which last for a function's timeout plus two seconds.
func TestL5_HurriedShortensWhatTheStoryWaitsFor(t *testing.T) {
	own := &template.Template{
		Functions: []*template.Function{
			{LogicalID: "PaymentsFunction", Timeout: 10 * time.Second},
			{LogicalID: "TransfersFunction", Timeout: 10 * time.Second},
			{LogicalID: "ReceiptsFunction", Timeout: 10 * time.Second, Sources: []template.Source{{}}},
		},
		Queues: []template.Queue{{Visibility: time.Minute}, {Visibility: time.Second}},
	}
	hurried(own)
	for i, want := range []time.Duration{10 * time.Second, 4 * time.Second, 4 * time.Second} {
		if f := own.Functions[i]; f.Timeout != want {
			t.Errorf("%s has a timeout of %v; want %v", f.LogicalID, f.Timeout, want)
		}
	}
	for i, want := range []time.Duration{7 * time.Second, time.Second} {
		if got := own.Queues[i].Visibility; got != want {
			t.Errorf("queue %d has a visibility timeout of %v; want %v", i, got, want)
		}
	}
}
