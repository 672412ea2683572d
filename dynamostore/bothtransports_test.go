//go:build !race

// make test-without-race runs this test, which takes four times as long with the race detector.

package dynamostore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Whatever DynamoDB responds, both transports return the same, after the same number of attempts at
// the same times. Neither reports that nothing was written if something may have been.
func TestX8_BothTransportsMakeTheSameOfWhateverComes(t *testing.T) {
	all := odds()
	named := func(name string) odd {
		return all[slices.IndexFunc(all, func(o odd) bool { return o.name == name })]
	}
	throttled, lost, fine := named("ThrottlingException"), named("lost"), named("good")
	// The outcomes of a second attempt, which the SDK makes with both transports.
	seconds := []odd{named("cut"), named("no connection"), named("hangs"), named("500 after the write"), named("its record is taken"), named("a write of its own is refused"),
		named("refused by its own record"), named("refused by a completed record"), named("the caller ends, and it hangs"), named("the caller ends as it is throttled")}
	for name, verb := range verbs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, f := range all {
					for _, faults := range [][]odd{{f, fine}, {f, throttled, throttled}, {lost, f}, {f, f, f}} {
						compare(t, name, verb, faults)
					}
					if name == "acquire" || name == "commit" {
						for _, second := range seconds {
							compare(t, name, verb, []odd{f, second})
						}
					}
				}
			})
		})
	}
}

func compare(t *testing.T, name string, verb func(context.Context, *Store) (lambdaidem.Record, error), faults []odd) {
	t.Helper()
	names := make([]string, len(faults))
	for i, f := range faults {
		names[i] = f.name
	}
	what := fmt.Sprintf("%s: %s", name, strings.Join(names, "; "))
	sdks, ours := call(TransportSDK, verb, faults), call(TransportDirect, verb, faults)
	sdks.checkX8(t, what+" (SDK)", name, faults)
	ours.checkX8(t, what, name, faults)
	// One difference is intended. After the first attempt, the direct transport leaves its outcome
	// to the SDK. If the caller's context has ended by then, the SDK does not read the outcome. The
	// direct transport then reports the end of the context, and that the attempt may have written.
	if faults[0].cuts && sdks.Error != "" && ours.Error != "" {
		if ours.Store.NotApplied && !sdks.Store.NotApplied {
			t.Errorf("%s: NotApplied, and to the SDK it may have been:\n%s\n%s", what, sdks.Error, ours.Error)
		}
		sdks.Error, sdks.Store.Reason, sdks.Store.Throttle, sdks.Store.NotApplied = ours.Error, ours.Store.Reason, ours.Store.Throttle, ours.Store.NotApplied
	}
	// All attempts of a call must send the same bytes, whichever transport makes them. This also
	// holds for writes without a transaction.
	for operation, n := range ours.Bodies {
		if n > 1 {
			t.Errorf("%s: %d different %ss", what, n, operation)
		}
	}
	if diff := cmp.Diff(sdks, ours); diff != "" {
		t.Errorf("%s: SDK - direct +:\n%s", what, diff)
	}
}
