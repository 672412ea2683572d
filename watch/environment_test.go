package watch

import (
	"slices"
	"strings"
	"testing"
)

func environment(t *testing.T, values map[string]string) {
	t.Helper()
	for _, name := range []string{tableVariable, indexVariable, shardsVariable, serviceVariable, routesVariable} {
		t.Setenv(name, values[name])
	}
	t.Setenv("AWS_REGION", "eu-west-1")
}

// A single error names every variable that is missing or invalid, and says how to set it.
func TestMain_SaysWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		set  map[string]string
		want []string
	}{
		{nil, []string{"the environment variable IDEMPOTENCY_TABLE is not set: set it to the name of the table", "the environment variable IDEMPOTENCY_LEASE_INDEX is not set: set it to the name of the table's index of leases"}},
		{map[string]string{tableVariable: "records"}, []string{"IDEMPOTENCY_LEASE_INDEX is not set"}},
		{map[string]string{indexVariable: "leases"}, []string{"IDEMPOTENCY_TABLE is not set"}},
		{map[string]string{indexVariable: "leases", shardsVariable: "many"}, []string{"IDEMPOTENCY_TABLE is not set", `IDEMPOTENCY_LEASE_SHARDS is "many": set it to dynamostore.Options.LeaseShards`}},
		{map[string]string{tableVariable: "records", indexVariable: "leases", shardsVariable: "0"}, []string{`IDEMPOTENCY_LEASE_SHARDS is "0"`}},
		{map[string]string{tableVariable: "records", indexVariable: "leases", shardsVariable: "1001"}, []string{`IDEMPOTENCY_LEASE_SHARDS is "1001"`}},
	} {
		environment(t, c.set)
		handler, err := fromEnvironment(t.Context())
		if err == nil || handler != nil || strings.Count(err.Error(), "the environment variable") != len(c.want) {
			t.Errorf("with %v: %v", c.set, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("with %v the error is %q; want %q in it", c.set, err, want)
			}
		}
	}
}

// The service and the routes are optional.
func TestMain_NeedsATableAndItsIndex(t *testing.T) {
	environment(t, map[string]string{tableVariable: "records", indexVariable: "leases"})
	if handler, err := fromEnvironment(t.Context()); err != nil || handler == nil {
		t.Error(err)
	}
}

// The number of shards must be valid, because a watch with too few shards would miss leases without
// any error.
func TestMain_ReadsTheNumberOfShards(t *testing.T) {
	for text, want := range map[string]int{"": 0, "1": 1, "256": 256, "1000": 1000} {
		if got, err := shardsIn(text); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestMain_ReadsAListOfRoutes(t *testing.T) {
	for list, want := range map[string][]string{
		"":                             nil,
		" , ":                          nil,
		"notification":                 {"notification"},
		"POST /payments,notification":  {"POST /payments", "notification"},
		" POST /payments , charge\t, ": {"POST /payments", "charge"},
	} {
		if got := routesIn(list); !slices.Equal(got, want) {
			t.Errorf("%q has the routes %q, want %q", list, got, want)
		}
	}
}
