package dynamostore

import (
	"errors"
	"time"

	"github.com/lambdaidem/toolkit/internal/elapsed"
)

// At returns the current time by the database's clock: Now plus the time that has passed since the
// record was read. At does not depend on the wall clock of this machine. The result may be behind
// the database's clock by up to a second, because Now is rounded down, and also by the time that
// the reply took to arrive.
func (i Inspected) At() time.Time { return i.Now.Add(time.Since(i.readAt)) }

// latest returns the current time by the database's clock. Unlike At, it includes the time that
// this machine slept. But it reads the wall clock, so the result is too late if that clock was set
// forward.
//
// Use latest to compute a new expiry, which must not be in the past. Use At to find out whether a
// lease has ended: by a time that is too late, a live lease could look dead.
func (i Inspected) latest() time.Time {
	since, _ := elapsed.Since(i.readAt)
	return i.Now.Add(since)
}

// inspectedAt returns an Inspected without a record, for a reply that DynamoDB has just sent. The
// parameter date is the Date header of the reply. [Inspected.At] adds the time that passes from now
// on.
func inspectedAt(date time.Time) Inspected { return Inspected{Now: date.UTC(), readAt: time.Now()} }

// errNoDate means that a reply has no Date header. DynamoDB sends this header with each
// reply (RFC 9110, section 6.6.1), so a proxy replied instead or removed the header.
var errNoDate = errors.New("the answer has no Date header, so the database's clock is not known")
