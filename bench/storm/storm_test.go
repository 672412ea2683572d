package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

// TestMain makes the test's program a process of a storm if startProcess has started it.
func TestMain(m *testing.M) {
	if isProcess() {
		os.Exit(runProcess())
	}
	os.Exit(m.Run())
}

// A storm fails if the handler does not run exactly once, if an answer is wrong, or if a duplicate
// needs too many requests to DynamoDB; see storm.audit.
func TestStorm_RunsOnceAndAnswersEveryDuplicate(t *testing.T) {
	l, err := newLab(t.Context(), ddblocal.ForTest(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, processes := range []int{1, 2} {
		for _, m := range modes {
			t.Run(fmt.Sprintf("%s, %d processes", m.name, processes), func(t *testing.T) {
				s, err := l.storm(t.Context(), m, processes, usual(200))
				if err != nil {
					t.Fatal(err)
				}
				if s.units != (units{write: 1, read: 1}) {
					t.Errorf("a call consumes %+v; the formula of the report expects one unit", s.units)
				}
			})
		}
	}
}
