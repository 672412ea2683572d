package commands

import (
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// restoredData is business data that was restored to an earlier time while the table of records was
// kept. The restored data has the writes from before point and those from after until. The writes
// in between are lost: they went to the data that the restored data replaced.
//
// The times in a record are those of the function's clock, from before its writes were committed.
// So the times of some records don't say whether their writes are lost.
type restoredData struct {
	point   time.Time     // --since
	until   time.Time     // --until
	maxSkew time.Duration // --max-skew
	now     time.Time     // the database's time
}

// writesFate says whether restored data has the writes of a record.
type writesFate int

const (
	writesDoubtful writesFate = iota // nobody can tell by the times in the record
	writesKept                       // the data has all writes of the record
	writesLost                       // the data has no write of the record
)

const (
	// latestCommit is how long after its completion, by the function's clock, a record's writes may
	// be committed. An attempt sends its transaction for at most 15 minutes, and AWS accepts the last
	// request for at most 15 minutes more.
	latestCommit = 30 * time.Minute

	// restoredUnit is the precision of a restore. DynamoDB restores a table to a whole second
	// ("RestoreTableToPointInTime"), and does not say which writes of that second are included.
	restoredUnit = time.Second
)

// margin is how far the restored data may differ from a time in a record.
func (d *restoredData) margin() time.Duration { return d.maxSkew + restoredUnit }

// lastWrite returns the time by which all writes of a record are committed that ever will be.
func (d *restoredData) lastWrite(rec lambdaidem.Record) time.Time {
	ended := rec.CompletedAt
	if rec.State != lambdaidem.Completed {
		ended = rec.LeaseEnd
	}
	return ended.Add(latestCommit + d.margin())
}

// fate returns the fate of a record's writes. It compares the earliest and the latest time at which
// they can have been committed.
func (d *restoredData) fate(rec lambdaidem.Record) writesFate {
	last := d.lastWrite(rec)
	if last.Before(d.point) {
		return writesKept
	}
	if rec.Attempt > 1 { // an earlier attempt may have written too, and the record doesn't say when it began
		return writesDoubtful
	}
	switch first := rec.StartedAt.Add(-d.margin()); {
	case first.After(d.until):
		return writesKept
	case first.After(d.point) && last.Before(d.until):
		return writesLost
	default:
		return writesDoubtful
	}
}

// canForget reports whether a purge with --forget selects the record: its writes are lost, and it is
// not in progress. For a part of an answer, canForget reports whether the part was written after the
// point in time. A purge deletes a part only if no record refers to it.
func (d *restoredData) canForget(rec lambdaidem.Record) bool {
	switch rec.State {
	case lambdaidem.Absent:
		return !rec.StartedAt.Before(d.point)
	case lambdaidem.InProgress:
		return false
	default:
		return d.fate(rec) == writesLost
	}
}

// mustDecide reports whether an operator must decide about a record that the purge leaves, because
// canForget returned false: a retry may replay an answer, or the result of a step, whose writes are
// lost.
func (d *restoredData) mustDecide(rec lambdaidem.Record) bool {
	switch {
	case rec.GoneAt(d.now.Add(-d.maxSkew)), d.fate(rec) == writesKept:
		return false
	case rec.State == lambdaidem.Released:
		return len(rec.Steps) > 0
	case rec.State == lambdaidem.InProgress: // without steps, only its attempt can still give it an answer
		return len(rec.Steps) > 0 || d.now.Before(d.lastWrite(rec))
	default:
		return true
	}
}
