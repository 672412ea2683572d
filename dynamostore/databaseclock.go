package dynamostore

import (
	"errors"
	"time"

	"github.com/lambdaidem/toolkit/internal/elapsed"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// databaseClock tells the time by the database's clock. It knows the time in the Date header of one
// reply, and adds the time that has passed since then.
type databaseClock struct {
	date   time.Time // the Date header of the reply, in whole seconds, rounded down
	readAt time.Time // when the reply arrived, by this machine's clocks
}

// clockOf returns the database's clock for a reply that has just arrived. date is the Date header
// of the reply.
func clockOf(date time.Time) databaseClock {
	return databaseClock{date: date, readAt: time.Now()}
}

// now returns the current time by the database's clock. It does not depend on the wall clock of
// this machine. The result may be behind the database's clock by up to a second, because the Date
// header is rounded down, and also by the time that the reply took to arrive.
//
// Use now to find out whether a lease has ended.
func (c databaseClock) now() time.Time { return c.date.Add(time.Since(c.readAt)) }

// latest is like now, but includes the time during which this machine slept. To do so, it reads the
// wall clock. If that clock was set forward, the result is ahead of the database's clock.
//
// Use latest to compute a new expiry, which must not be in the past. Don't use it to find out
// whether a lease has ended: if the result is ahead, a live lease seems to have ended.
func (c databaseClock) latest() time.Time {
	since, _ := elapsed.Since(c.readAt)
	return c.date.Add(since)
}

// inspected returns an Inspected with the record rec, the operations ops, and the times in c.
func (c databaseClock) inspected(rec lambdaidem.Record, ops []Operation) Inspected {
	return Inspected{Record: rec, Operations: ops, Now: c.date, readAt: c.readAt}
}

// At returns the current time by the database's clock: Now plus the time that has passed since the
// record was read. At does not depend on the wall clock of this machine. The result may be behind
// the database's clock by up to a second, because Now is rounded down, and also by the time that
// the reply took to arrive.
func (i Inspected) At() time.Time { return i.clock().now() }

// clock returns the database's clock at the time when the record was read.
func (i Inspected) clock() databaseClock { return databaseClock{date: i.Now, readAt: i.readAt} }

// errNoDate means that a reply has no Date header. DynamoDB sends this header with each
// reply (RFC 9110, section 6.6.1), so a proxy replied instead or removed the header.
var errNoDate = errors.New("the answer has no Date header, so the database's clock is not known")
