package storetest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
	"github.com/lambdaidem/toolkit/lambdaidem/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite_PassesRightStores(t *testing.T) {
	right := newVariant(none)
	storetest.Test(t, func(*testing.T) lambdaidem.Store { return right })
	loader := newLoader(none)
	storetest.Test(t, func(*testing.T) lambdaidem.Store { return loader })
	transactor := newTransactor(none)
	storetest.Test(t, func(*testing.T) lambdaidem.Store { return transactor })
	storetest.Test(t, func(*testing.T) lambdaidem.Store { return memstore.New() })
	if err := storetest.Run(t.Context(), newVariant(none)); err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestSuite_CatchesEveryFault(t *testing.T) {
	for f := none + 1; f < faultCount; f++ {
		expected := faults[f]
		t.Run(expected.does, func(t *testing.T) {
			// In a synctest bubble, the pauses of a faulty store take no time, and every race has
			// the same result.
			synctest.Test(t, func(t *testing.T) {
				caughtBy := failing(t.Context(), faultyStore(f))
				t.Logf("caught by: %s", strings.Join(caughtBy, ", "))
				if len(expected.caughtBy) == 0 {
					t.Error("the table names no step that must catch it")
				}
				for _, step := range expected.caughtBy {
					if !slices.Contains(caughtBy, step) {
						t.Errorf("the step %q does not catch it", step)
					}
				}
			})
		})
	}
}

func TestSuite_EveryStepIsNeeded(t *testing.T) {
	needed := map[string]bool{}
	for _, f := range faults {
		for _, step := range f.caughtBy {
			needed[step] = true
		}
	}
	seen := map[string]bool{}
	for _, step := range storetest.Steps() {
		switch {
		case !needed[step.Name]:
			t.Errorf("the step %q must catch no fault", step.Name)
		case seen[step.Name]:
			t.Errorf("two steps are called %q", step.Name)
		case step.Rule == "" || step.Doc == "":
			t.Errorf("the step %q has no rule or no doc", step.Name)
		}
		seen[step.Name] = true
		delete(needed, step.Name)
	}
	for step := range needed {
		t.Errorf("the table of faults names %q, which is no step", step)
	}
}

func TestRun_NamesStepAndRule(t *testing.T) {
	err := storetest.Run(t.Context(), newVariant(completionUnfenced))
	if err == nil || !strings.Contains(err.Error(), "completion is fenced (L3): a completion with another token:") {
		t.Errorf("Run of a store without fencing: %v", err)
	}
}

func TestSteps_LeaveRecordsThatExpireInTime(t *testing.T) {
	store := newTransactor(none)
	e := storetest.NewEnv(store)
	for _, step := range storetest.Steps() {
		if err := step.Run(t.Context(), e); err != nil {
			t.Fatalf("%s: %v", step.Name, err)
		}
	}
	for id, r := range store.records {
		if !strings.HasPrefix(id, e.Prefix) {
			t.Errorf("the id %q does not begin with the run's prefix %q", id, e.Prefix)
		}
		// An earlier expiry would let a database delete the record during a run.
		if r.Expires.Before(e.Base) || r.Expires.After(e.Base.Add(46*time.Hour)) {
			t.Errorf("a record of %q expires at %v; the steps' time begins at %v", r.Scope, r.Expires, e.Base)
		}
	}
}

// failing runs all steps on store and returns the names of those that failed.
func failing(ctx context.Context, store lambdaidem.Store) []string {
	var names []string
	e := storetest.NewEnv(store)
	for _, step := range storetest.Steps() {
		if step.Run(ctx, e) != nil {
			names = append(names, step.Name)
		}
	}
	return names
}

func ExampleRun() {
	err := storetest.Run(context.Background(), memstore.New())
	fmt.Println(err)
	// Output: <nil>
}
