package lambdaidem_test

import (
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

func TestL6_ARecordIsHeldWhileItIsInProgressWithoutAnExpiry(t *testing.T) {
	expires := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		record lambdaidem.Record
		want   bool
	}{
		{lambdaidem.Record{State: lambdaidem.InProgress}, true},
		{lambdaidem.Record{State: lambdaidem.InProgress, Expires: expires}, false},
		{lambdaidem.Record{State: lambdaidem.Completed, Expires: expires}, false},
		{lambdaidem.Record{State: lambdaidem.Released}, false},
		{lambdaidem.Record{}, false},
	} {
		if got := c.record.Held(); got != c.want {
			t.Errorf("a record in state %q that expires at %v: Held() = %t, want %t", c.record.State, c.record.Expires, got, c.want)
		}
	}
}
