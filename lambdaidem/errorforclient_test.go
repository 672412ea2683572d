package lambdaidem_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The handler charges in a step, fails afterwards, and marks the error as Retryable. A client that
// is told that nothing was carried out may send the request with a new key, and pay twice.
func TestX2_AClientIsNeverToldThatARetryableFailureHadNoEffect(t *testing.T) {
	r := newRig(func(ctx context.Context, _ request) (response, error) {
		_, err := lambdaidem.Step(ctx, "charge", func(context.Context) (int, error) { return 1, nil })
		if err != nil {
			t.Error(err)
		}
		return response{}, lambdaidem.Retryable(errWire)
	})
	out := r.send(t, first())
	wantProblem(t, out, http.StatusServiceUnavailable, lambdaidem.ErrRetryable)
	if strings.Contains(out.Body, "not carried out") || !strings.Contains(out.Body, "with the same key") {
		t.Errorf("the client is told %s", out.Body)
	}
}
