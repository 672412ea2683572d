package dynamostore

import (
	"errors"
	"time"

	"github.com/lambdaidem/toolkit/internal/elapsed"
)

// At returns the current time by the database's clock: Now plus the time that has passed
// since the read. It does not depend on the wall clock of this machine. At may be behind
// the database's clock by up to a second, because Now is rounded down, and by the time
// that the reply took to arrive.
func (i Inspected) At() time.Time { return i.Now.Add(time.Since(i.read)) }

// latest is like At, but is not behind if this machine slept after the read. While a machine
// sleeps, its monotonic clock may stand still, so At misses that time. latest therefore also
// uses the wall clock. If the wall clock was set forward, latest returns a time that is too
// late.
//
// A new expiry is computed from latest, so that it is not in the past when it is written. The
// end of a lease is compared with At, because a time that is too late could make a live lease
// look as if it had ended.
func (i Inspected) latest() time.Time {
	since, _ := elapsed.Since(i.read)
	return i.Now.Add(since)
}

// inspectedAt returns an Inspected without a record, for a reply that DynamoDB has just sent.
// date is the Date header of the reply. [Inspected.At] counts the time from this moment.
func inspectedAt(date time.Time) Inspected { return Inspected{Now: date.UTC(), read: time.Now()} }

// errNoDate means that a reply has no Date header. DynamoDB sends this header with each
// reply (RFC 9110, section 6.6.1), so a proxy replied instead or removed the header.
var errNoDate = errors.New("the answer has no Date header, so the database's clock is not known")
