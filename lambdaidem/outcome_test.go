package lambdaidem_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

func TestX2_DeadlineErrorsAreUncertainUnderHold(t *testing.T) {
	for _, err := range []error{context.DeadlineExceeded, os.ErrDeadlineExceeded} {
		r := newRig(func(context.Context, request) (response, error) { return response{}, err }, func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold })
		if _, got := r.handler(t.Context(), first()); !errors.Is(got, err) {
			t.Errorf("the error is %v", got)
		}
		if rec := r.record(t); rec.State != lambdaidem.InProgress {
			t.Errorf("after %v the record is %s", err, rec.State)
		}
	}
}
