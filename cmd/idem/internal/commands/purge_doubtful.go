package commands

import (
	"slices"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// doubtfulView is a record that a purge of restored data has left for an operator to decide, as
// --output json prints it.
type doubtfulView struct {
	ID          string    `json:"id"`
	State       string    `json:"state"` // as leases and show print it; "erased" if the record has no answer any more
	Attempt     int       `json:"attempt"`
	Steps       int       `json:"steps"`
	Scope       string    `json:"scope"`
	StartedAt   time.Time `json:"startedAt"`
	CompletedAt time.Time `json:"completedAt,omitzero"`
}

func doubtfulOf(rec lambdaidem.Record, now time.Time) doubtfulView {
	v := doubtfulView{ID: rec.ID, State: stateOf(rec, now), Attempt: rec.Attempt, Steps: len(rec.Steps), Scope: rec.Scope, StartedAt: rec.StartedAt, CompletedAt: rec.CompletedAt}
	if f := rec.Result.Failure; f != nil && f.Code == lambdaidem.ErrAnswerUnavailable && f.Type == "" {
		v.State = "erased"
	}
	return v
}

// printDoubtful prints the records that an operator must decide, the one that began first at the
// top, and says how.
func printDoubtful(to printer, records []doubtfulView) error {
	if len(records) == 0 {
		return nil
	}
	say(to, `DECIDE %s. The purge leaves what it can't tell by the times of a record.
Compare each record with the restored data (idem show RECORD prints its answer):
  all its writes are missing: idem purge --forget RECORD...
  all its writes are there: leave the record
  some are missing, or it is neither completed nor failed: docs/operate.md, "The table was restored"
`, counted(len(records), "record: the restored data may have its writes, or lack them", "records one by one: the restored data may have their writes, or lack them"))
	slices.SortStableFunc(records, func(x, y doubtfulView) int { return x.StartedAt.Compare(y.StartedAt) })
	w := newTable(to)
	say(w.printer, "BEGAN\tCOMPLETED\tSTATE\tATTEMPT\tSTEPS\tROUTE\tCALLER\tRECORD\n")
	for _, r := range records {
		completed, route, caller := "", clip(r.Scope), ""
		if !r.CompletedAt.IsZero() {
			completed = r.CompletedAt.Format(time.RFC3339)
		}
		if s, err := lambdaidem.ParseScope(r.Scope); err == nil {
			route, caller = clip(printedRoute(s)), clip(orNobody(unescaped(s.Principal)))
		}
		say(w.printer, "%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\n", r.StartedAt.Format(time.RFC3339), completed, r.State, r.Attempt, r.Steps, route, caller, r.ID)
	}
	return w.flush()
}
