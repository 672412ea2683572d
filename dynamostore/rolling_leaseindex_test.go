package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Versions with and without the index run attempts on one table in turn, in both directions. Each
// answer is replayed correctly, no handler runs twice, and DeadLeases finds what the index
// contains.
func TestD4_RollingDeploysOfTheIndex(t *testing.T) {
	for name, c := range map[string]struct {
		first, second, third string // the versions whose attempt dies, whose attempt takes over and dies, and whose attempt completes
		found                []bool // whether DeadLeases finds the record after the first, the second and the third attempt
		stale                bool   // whether the completed record still has a shard
	}{
		"with it":           {"new", "new", "new", []bool{true, true, false}, false},
		"rolled out":        {"old", "new", "new", []bool{false, true, false}, false},
		"rolled out later":  {"old", "old", "new", []bool{false, false, false}, false},
		"rolled back":       {"new", "old", "old", []bool{true, true, false}, true},
		"rolled back later": {"new", "new", "old", []bool{true, true, false}, true},
		"there and back":    {"new", "old", "new", []bool{true, true, false}, false},
		"out and back":      {"old", "new", "old", []bool{false, true, false}, true},
		"never heard of it": {"old", "old", "old", []bool{false, false, false}, false},
	} {
		t.Run(name, func(t *testing.T) {
			client, table := freshTable(t, indexed)
			reader := New(client, table, patient, indexed)
			clock := time.Now()
			runs := 0
			guards := map[string]*lambdaidem.Guard{}
			for version, store := range map[string]*Store{"new": reader, "old": New(client, table, patient)} {
				guards[version] = lambdaidem.New(store, func(o *lambdaidem.Options) {
					o.Namespace, o.Observer, o.Clock = "shop", lambdaidem.Discard, func() time.Time { return clock }
				})
			}
			do := func(version string, fail error) (string, error) {
				return lambdaidem.Do(t.Context(), guards[version], lambdaidem.Call{Operation: "pay", Key: "k"}, func(context.Context) (string, error) {
					runs++
					return fmt.Sprint("run ", runs), fail
				})
			}
			for i, version := range []string{c.first, c.second, c.third} {
				died := lambdaidem.Uncertain(errors.New("died"))
				if i == 2 {
					died = nil
				}
				if got, err := do(version, died); err == nil != (i == 2) || i == 2 && got != "run 3" {
					t.Fatalf("step %d: %q, %v", i, got, err)
				}
				clock = clock.Add(5 * time.Minute)
				if found := len(deadIDs(t, reader, clock)) == 1; found != c.found[i] {
					t.Errorf("after step %d a dead lease is found: %v", i, found)
				}
			}
			for version := range guards {
				if got, err := do(version, nil); err != nil || got != "run 3" {
					t.Errorf("%s replays %q, %v", version, got, err)
				}
			}
			id := guards["new"].RecordID(lambdaidem.Identity{Operation: "pay", Key: "k"})
			if stale := shardIn(t, client, table, id) != ""; stale != c.stale {
				t.Errorf("the completed record has a shard: %v", stale)
			}
		})
	}
}
