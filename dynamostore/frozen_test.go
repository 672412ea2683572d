package dynamostore

import (
	"testing"
	"time"
	"unsafe"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// frozenSince returns a time that is d ago by the wall clock, and now by the monotonic clock, which
// stands still while the process is frozen. Package time offers no other way to make it than to
// change its monotonic reading.
func frozenSince(d time.Duration) time.Time {
	at := time.Now().Add(-d)
	(*struct { // as time.Time is laid out
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&at)).ext += int64(d) //nolint:gosec // of a variable of this function
	return at
}

func TestE1_AFrozenProcessSendsNoForgottenTransactionAgain(t *testing.T) {
	if since := time.Since(frozenSince(time.Hour)); since > time.Minute {
		t.Fatalf("the monotonic clock says %v; the layout of time.Time has changed", since)
	}
	for first, want := range map[time.Time]bool{frozenSince(tokenLife + time.Minute): false, frozenSince(tokenLife - time.Minute): true, {}: true} {
		p := &prepared{completion: &lambdaidem.Completion{Alone: true}, first: first}
		if got := p.mayBeSent(); got != want {
			t.Errorf("first sent at %v: %v, want %v", first, got, want)
		}
	}
}

// The machine of an operator has slept since the read. An expiry must not lie in the past.
func TestO2_ASleepCountsForExpiriesAndNotForLeases(t *testing.T) {
	const slept = 2 * time.Hour
	now := time.Now().Truncate(time.Second)
	seen := Inspected{Now: now, read: frozenSince(slept)}
	if at := seen.At().Sub(now); at > time.Minute {
		t.Errorf("At counts %v", at)
	}
	if latest := seen.latest().Sub(now); latest < slept || latest > slept+time.Minute {
		t.Errorf("latest counts %v", latest)
	}
	o := &Operator{opts: OperatorOptions{TTL: time.Hour}}
	if expires := o.expires(seen).Sub(now); expires < slept+time.Hour {
		t.Errorf("a settled record expires %v after the read", expires)
	}
}
