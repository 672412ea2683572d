package lambdaidem_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

func TestL5_NoTimeLeftIsSaidAsSuch(t *testing.T) {
	for _, left := range []time.Duration{0, -time.Second} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(nil, func(o *lambdaidem.Options) { o.FailOpen = true })
			ctx, cancel := context.WithTimeout(t.Context(), left)
			defer cancel()
			out := r.sendCtx(ctx, t, first())
			wantProblem(t, out, 503, lambdaidem.ErrOutOfTime)
			r.wantEvents(t, lambdaidem.EventOutOfTime)
			r.wantRuns(t, 0)
		})
	}
}
