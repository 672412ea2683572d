package dynamostore

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The retry quota is the SDK's (AWS SDKs and Tools Reference Guide, "Retry behavior"). Each retry
// takes tokens from it. A retry that succeeds returns the tokens that it took, and a success at the
// first attempt adds a token.

// drained uses up the quota of a store, and returns the number of calls that this took. After that,
// each call makes only one attempt.
func drained(t *testing.T, s *Store, w *faultyWire) int {
	t.Helper()
	for calls := 1; calls < 10*int(retry.DefaultRetryRateTokens); calls++ {
		before := w.trips()
		_, err := s.Acquire(t.Context(), claim)
		if err == nil {
			t.Fatal("a throttled call succeeded")
		}
		if w.trips() == before+1 {
			return calls
		}
	}
	t.Fatal("the quota is never used up")
	return 0
}

// throttledFor returns a store whose requests are throttled, except those for which the test sets
// another fault.
func throttledFor(by func(*Options)) (*Store, *faultyWire) {
	client, w := inMemory()
	w.next = doFunc(func(*http.Request) (*http.Response, error) { return throttle(nil, nil) })
	return New(client, "test", quick, by), w
}

// With both transports, retries end after the same number of calls, with the same error text.
func TestADrainedQuotaEndsRetriesAlike(t *testing.T) {
	calls, words := map[string]int{}, map[string]string{}
	both(t, func(t *testing.T, by func(*Options)) {
		s, w := throttledFor(by)
		which, _ := s.Transport()
		calls[string(which)] = drained(t, s, w)
		_, err := s.Acquire(t.Context(), claim)
		wantStoreError(t, err, opAcquire, lambdaidem.ReasonThrottled, true)
		if quota, ok := errors.AsType[ratelimit.QuotaExceededError](err); !ok {
			t.Errorf("error is %v; want it to name the quota: %v", err, quota)
		}
		words[string(which)] = err.Error()
	})
	if calls["sdk"] != calls["direct"] || calls["sdk"] == 0 || words["sdk"] != words["direct"] {
		t.Errorf("calls until the quota is used up: %v; they end with %q", calls, words)
	}
}

// A success at the first attempt adds to the quota. A failed condition, another error, and a
// success at a retry don't. Both transports count in the same way.
func TestWhatPaysIntoTheQuota(t *testing.T) {
	for _, c := range []struct {
		name string
		what fault
		pays bool
	}{
		{"success", good, true},
		{"success in another form", with(func(r *http.Response, text string) {
			r.Body = io.NopCloser(strings.NewReader(strings.TrimSuffix(text, "}") + `"New":1}`))
		}), true},
		{"a refusal", refuseFor(itemJSON(completedItem())), false},
		{"a refusal by nothing", refuseAs("ConditionalCheckFailedException"), false},
		{"a refusal in the header", fixed(400, `{}`, "X-Amzn-ErrorType", "ConditionalCheckFailedException"), false},
		{"an error", refuseAs("ValidationException"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			both(t, func(t *testing.T, by func(*Options)) {
				s, w := throttledFor(by)
				drained(t, s, w)
				for i := range int(retry.DefaultRetryCost / retry.DefaultNoRetryIncrement) { // this many successes pay for one retry
					before := w.trips()
					if _, _ = s.Acquire(t.Context(), claim); w.trips() != before+1 {
						t.Fatalf("after %d: %d attempts; want 1", i, w.trips()-before)
					}
					w.after(opPutItem, c.what)
					_, _ = s.Acquire(t.Context(), claim)
				}
				want, before := 1, w.trips()
				if c.pays {
					want = 2
				}
				if _, _ = s.Acquire(t.Context(), claim); w.trips()-before != want {
					t.Errorf("%d attempts; want %d", w.trips()-before, want)
				}
			})
		})
	}
}
