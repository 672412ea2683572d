package lambdaidem

import (
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/internal/elapsed/elapsedtest"
)

// A process can be frozen while an attempt runs. The monotonic clock then stands still, and the
// contexts of the attempt don't end.
func TestL7_AFrozenAttemptWithoutALeaseSendsNoLateTransaction(t *testing.T) {
	for began, want := range map[time.Duration]bool{longestWithoutLease: false, longestWithoutLease - time.Minute: true} {
		b := budget{start: elapsedtest.Move(time.Now(), -began, 0)}
		if got := b.maySendTx(); got != want {
			t.Errorf("%v after the attempt began, by the wall clock: %v; want %v", began, got, want)
		}
	}
}
