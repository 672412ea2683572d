package main

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

func TestQuantiles(t *testing.T) {
	var took []time.Duration
	for i := range 1000 {
		took = append(took, time.Duration(1000-i)) // 1000 to 1
	}
	if median, p99 := quantiles(took); median != 501 || p99 != 991 {
		t.Errorf("the median is %d, the 99th percentile %d; want 501 and 991", median, p99)
	}
}

// timedToolkit returns this toolkit's driver, ready to be timed, and ends it after the test.
func timedToolkit(t *testing.T) *timed {
	t.Helper()
	toolkit, err := beginTiming(context.WithoutCancel(t.Context()), builtToolkit(t), ddblocal.ForTest(t))
	t.Cleanup(func() {
		if err := toolkit.close(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return toolkit
}

// The page's figures of this toolkit that don't depend on the machine are those of this code.
func TestTimings_ToolkitConsumesWhatThePageSays(t *testing.T) {
	const rounds = 2
	committed, err := readTimings(root)
	if err != nil {
		t.Fatal(err)
	}
	toolkit := timedToolkit(t)
	for _, op := range operations {
		if err := timeOperation([]*timed{toolkit}, op, rounds); err != nil {
			t.Fatal(err)
		}
		if len(toolkit.took[op]) != rounds || toolkit.took[op][0] <= 0 {
			t.Errorf("%d operations %s took %v", rounds, op, toolkit.took[op])
		}
	}
	if toolkit.process.cpu() <= 0 && runtime.GOOS == "linux" {
		t.Error("the driver has used no processor time")
	}
	costs, err := toolkit.count()
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range operations {
		want := committed.Results[op][toolkit.peer.Name]
		want.MedianUS, want.P99US, want.CPUUS = 0, 0, 0
		if costs[op] != want {
			t.Errorf("a %s request consumes %+v; %s says %+v", op, costs[op], timingsFile, want)
		}
	}
}

// operate returns an error if a peer treats a request as another operation.
func TestTimings_OperateRefusesAnotherOperation(t *testing.T) {
	toolkit := timedToolkit(t)
	const seen, unseen = 1_000_000, 9_000_000 // beginTiming has sent the first key
	for name, one := range map[string]struct {
		op      string
		r, held int
	}{
		"a replay of nothing":       {opReplay, unseen, 0},
		"a new request, sent again": {opNew, seen, 0},
		"a conflict with nothing":   {opConflict, seen, unseen + 1},
		"a conflict that is over":   {opConflict, seen, seen},
	} {
		if _, err := toolkit.operate(toolkit.process, one.op, keyed(one.r), keyed(one.held)); err == nil {
			t.Errorf("%s counts as %s", name, one.op)
		}
	}
}
