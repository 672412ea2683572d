package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// search has the flags of leases and watch that say how to find dead leases.
type search struct {
	scan   bool
	rate   float64
	limit  int
	margin time.Duration                // --max-skew: how long after its end a lease counts as dead
	chosen func(lambdaidem.Record) bool // selects the leases to list; nil selects all
}

func (o *search) flags(f *pflag.FlagSet) {
	f.BoolVar(&o.scan, "scan", false, "read the whole table, if it has no index of leases; slow and expensive on a large table")
	f.Float64Var(&o.rate, "rate", 100, "the maximum requests per second; with --scan, read capacity units per second")
	f.IntVar(&o.limit, "limit", 1000, "the maximum number of leases to show, oldest first")
	f.DurationVar(&o.margin, "max-skew", 2*time.Second, "how long after its end a lease counts as dead; use the guard's Options.MaxSkew")
}

// leaseView is a record whose lease has ended, as --output json prints it.
type leaseView struct {
	ID         string     `json:"id"`
	State      string     `json:"state"` // dead or held
	Over       int64      `json:"overSeconds"`
	Attempt    int        `json:"attempt"`
	Invocation string     `json:"invocation,omitempty"` // the Lambda request id of the attempt
	Steps      int        `json:"steps"`
	Scope      string     `json:"scope"`
	Token      string     `json:"token"`
	StartedAt  *time.Time `json:"startedAt,omitempty"`
	LeaseEnd   *time.Time `json:"leaseEnd"`
}

// leasesView is the output of leases, as --output json prints it.
type leasesView struct {
	DatabaseTime time.Time   `json:"databaseTime"`
	Leases       []leaseView `json:"leases"`               // ordered by the ends of the leases
	More         bool        `json:"more"`                 // there are more leases than --limit
	Unreadable   int         `json:"unreadable,omitempty"` // the number of items that can't be read as records

	filtered bool // --never-started was given, so only the leases that it selects are listed
}

func newLeases(a *app) *cobra.Command {
	var (
		o search
		u neverStartedFlags
	)
	c := &cobra.Command{
		Use:   "leases",
		Short: "List leases whose attempts died, oldest first, including those held for an operator",
		Long: `List the records in progress whose lease has ended. The next retry takes over a dead
lease. A held lease (policy Hold) waits for release or settle.

leases reads the table's index of leases. If the table has none, --scan reads the whole
table.

After an outage, --never-started lists the leases whose handlers never started, according
to the functions' log. --release releases these records, each only if the claim in the log
line still holds it. Records with steps, and records whose earlier attempt died, are left
out, because those attempts may have had effects. So are records for which a call ran
without a lease (Options.FailOpen), so collect the "failed_open" lines too. If calls ran while
the guard was switched off, --release is refused: their "switched_off" lines name no record.`,
		Example: `  idem leases
  aws logs filter-log-events --log-group-name /aws/lambda/transfers --start-time 1795485600000 \
    --filter-pattern '{ ($.outcome = "never_started") || ($.outcome = "failed_open") || ($.outcome = "switched_off") }' \
    --query 'events[].message' --output text > log
  idem leases --never-started log --release --reason 'TICKET-5: the outage of 02:10'`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := u.check(); err != nil {
				return usage(err)
			}
			var err error
			if o.chosen, err = u.choose(c.Context(), a.In); err != nil {
				return err
			}
			s, _, err := a.store(c.Context())
			if err != nil {
				return err
			}
			v, err := o.look(a, c.Context(), s)
			if err != nil {
				return err
			}
			if a.output == outputJSON {
				err = printJSON(a.Out, v, true)
			} else {
				err = v.text(a.Out)
			}
			if err != nil {
				return err
			}
			u.printLeftOut(a.Err)
			if !u.release {
				return nil
			}
			return u.releaseAll(c.Context(), a, s, v.Leases)
		},
	}
	o.flags(c.Flags())
	u.flags(c.Flags())
	return c
}

// check returns an error if a flag is out of range.
func (o *search) check() error {
	switch {
	case o.limit < 1:
		return fmt.Errorf("--limit is %d; it must be at least 1", o.limit)
	case o.margin < 0:
		return fmt.Errorf("--max-skew is %v; it must be at least 0", o.margin)
	}
	return checkRate(o.rate)
}

// look returns up to o.limit leases that have ended by the database's clock, both dead leases and
// those of held records.
func (o *search) look(a *app, ctx context.Context, s *dynamostore.Store) (leasesView, error) { //nolint:revive // the app first, as everywhere here
	if err := o.check(); err != nil {
		return leasesView{}, usage(err)
	}
	clock, err := s.Inspect(ctx, "lambdaidem#clock") // reads only the time; no record has this id
	if err != nil {
		return leasesView{}, fmt.Errorf("ask for the database's clock: %w", err)
	}
	found := leasesView{DatabaseTime: clock.Now, Leases: []leaseView{}, filtered: o.chosen != nil}
	for rec, err := range o.records(a, ctx, s, clock.At().Add(-o.margin)) {
		if err != nil && rec.ID != "" { // the item can't be read as a record
			found.Unreadable++
			continue
		}
		if err != nil {
			return found, fmt.Errorf("look for leases: %w", err)
		}
		if !rec.LeaseLiveAt(clock.At().Add(-o.margin)) && (o.chosen == nil || o.chosen(rec)) {
			found.add(rec, clock.At(), o.limit)
		}
	}
	return found, nil
}

// records returns records in progress: from the index those whose leases ended before the
// given time, or from a scan all of them.
func (o *search) records(a *app, ctx context.Context, s *dynamostore.Store, before time.Time) iter.Seq2[lambdaidem.Record, error] { //nolint:revive // the app first, as everywhere here
	if a.leaseIndex != "" && !o.scan {
		return s.DeadLeases(ctx, func(d *dynamostore.DeadLeasesOptions) { d.Before, d.Rate = before, o.rate })
	}
	return func(yield func(lambdaidem.Record, error) bool) {
		if !o.scan {
			yield(lambdaidem.Record{}, usage(errors.New("which index of leases? Use --lease-index or "+indexVariable+"; without one --scan reads the whole table, and pays for all of it")))
			return
		}
		say(a.Err, "Reading the whole table, at %g read units a second at most.\n", o.rate)
		for seen, err := range s.ScanLeases(ctx, func(so *dynamostore.ScanOptions) { so.Pace = pace(o.rate) }) {
			if !yield(seen.Record, err) || err != nil && seen.Record.ID == "" {
				return
			}
		}
	}
}

// add adds a record to v.Leases, if it is dead or held. If there are then more than limit,
// it drops the one whose lease ended last.
func (v *leasesView) add(rec lambdaidem.Record, now time.Time, limit int) {
	one := leaseView{ID: rec.ID, State: stateOf(rec, now), Over: int64(now.Sub(rec.LeaseEnd) / time.Second), Attempt: rec.Attempt,
		Steps: len(rec.Steps), Scope: rec.Scope, Token: rec.Token, Invocation: rec.Invocation, StartedAt: moment(rec.StartedAt), LeaseEnd: moment(rec.LeaseEnd)}
	if one.State != "dead" && one.State != "held" { // an expired record needs no operator
		return
	}
	at, _ := slices.BinarySearchFunc(v.Leases, one, func(x, y leaseView) int {
		return cmp.Or(x.LeaseEnd.Compare(*y.LeaseEnd), strings.Compare(x.ID, y.ID))
	})
	v.Leases = slices.Insert(v.Leases, at, one)
	if len(v.Leases) > limit {
		v.Leases, v.More = v.Leases[:limit], true
	}
}

// text prints the leases as a table.
func (v *leasesView) text(to printer) error {
	if len(v.Leases) == 0 {
		among := ""
		if v.Unreadable > 0 {
			among = ", among the items that can be read"
		}
		if v.filtered {
			say(to, "No lease belongs to a handler that is known never to have started%s.\n", among)
		} else {
			say(to, "No lease is dead, and no record is held%s.\n", among)
		}
		v.textOfUnreadable(to)
		return nil
	}
	w := newTable(to)
	say(w.printer, "OVERDUE BY\tSTATE\tATTEMPT\tSTEPS\tROUTE\tCALLER\tRECORD")
	named := slices.ContainsFunc(v.Leases, func(l leaseView) bool { return l.Invocation != "" })
	if named {
		say(w.printer, "\tINVOCATION")
	}
	say(w.printer, "\n")
	for _, l := range v.Leases {
		route, caller := clip(l.Scope), ""
		if s, err := lambdaidem.ParseScope(l.Scope); err == nil {
			route, caller = clip(printedRoute(s)), clip(orNobody(unescaped(s.Principal)))
		}
		say(w.printer, "%s\t%s\t%d\t%d\t%s\t%s\t%s", span(time.Duration(l.Over)*time.Second), l.State, l.Attempt, l.Steps, route, caller, l.ID)
		if named {
			say(w.printer, "\t%s", clip(l.Invocation))
		}
		say(w.printer, "\n")
	}
	if v.More {
		say(w.printer, "(there are more than --limit)\n")
	}
	v.textOfUnreadable(w.printer)
	return w.flush()
}

// textOfUnreadable prints the number of items that can't be read as records. Each of them
// may hold a dead lease.
func (v *leasesView) textOfUnreadable(to printer) {
	if v.Unreadable > 0 {
		say(to, "(%s can't be read, and may hide a dead lease: damaged, of another tool, or with renamed attributes, which --attribute names)\n", counted(v.Unreadable, "item", "items"))
	}
}
