package dynamostore

import (
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/internal/elapsed/elapsedtest"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// frozenSince returns a time that is d ago by the wall clock, and now by the monotonic clock, which
// stands still while the process is frozen.
func frozenSince(d time.Duration) time.Time { return elapsedtest.Move(time.Now(), -d, 0) }

func TestE1_AFrozenProcessSendsNoForgottenTransactionAgain(t *testing.T) {
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
