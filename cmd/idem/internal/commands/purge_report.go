package commands

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lambdaidem/toolkit/dynamostore"
)

func (p *purgeCommand) report(a *app, sum dynamostore.PurgeProgress, match *matcher) error {
	v := purgeView{
		DryRun: p.dryRun, OnlyErased: sum.OnlyErased, forget: p.forget, expiresIn: p.expiresIn(),
		Looked: sum.Looked, Matched: sum.Matched, Purged: sum.Purged, Before: sum.Before, Changed: sum.Changed, InProgress: sum.InProgress,
		Parts: sum.Parts, Orphans: sum.Orphans, KeptParts: sum.KeptParts, KeptSteps: sum.KeptSteps, Undecided: sum.Undecided, InnerCalls: sum.InnerCalls, Foreign: sum.Foreign,
		Units: sum.Units, Seconds: sum.Elapsed.Round(time.Millisecond).Seconds(),
		IDPrefixes: tenants(match.IDPrefixes), Tenants: tenants(match.Tenants),
		CallersAlike:  match.callersAlike(),
		Doubtful:      match.Doubtful,
		WithoutCaller: match.Unnamed, RoutesWithout: slices.Sorted(maps.Keys(match.Routes)),
	}
	if v.forget {
		v.Forgotten = v.done() - v.OnlyErased
	}
	if v.After = p.after; v.After == "" { // with --after, records before that key may have matched
		v.Compared, v.NotFound = match.compared(), match.notFound()
	}
	if a.output == outputJSON {
		return printJSON(a.Out, v, true)
	}
	v.text(a.Out)
	match.text(a.Out, v.Compared)
	return printDoubtful(a.Out, v.Doubtful)
}

// purgeView is the report of a complete purge, as --output json prints it. The counts are
// those of dynamostore.PurgeProgress.
type purgeView struct {
	DryRun     bool    `json:"dryRun"`
	Looked     int     `json:"looked"`
	Matched    int     `json:"matched"`
	Purged     int     `json:"purged"`
	Forgotten  int     `json:"forgotten"`   // purged records that now expire soon (in a dry run: that would)
	OnlyErased int     `json:"onlyErased"`  // purged records to which --forget did not apply (in a dry run: would not apply)
	Before     int     `json:"nothingToDo"` // matched records that had no answer to erase, or, with --forget, that had been forgotten before
	Changed    int     `json:"changedMeanwhile"`
	InProgress int     `json:"inProgress"`
	Parts      int     `json:"parts"`
	Orphans    int     `json:"orphanedParts"` // deleted parts that no record referred to; in a dry run, those that would be deleted
	KeptParts  int     `json:"keptParts"`
	KeptSteps  int     `json:"keptSteps"`  // records that keep the results of their steps
	Undecided  int     `json:"undecided"`  // matched records whose attempt died after a step
	InnerCalls int     `json:"innerCalls"` // released records whose retry needs the answer of a guarded call
	Foreign    int     `json:"foreign"`
	Units      float64 `json:"capacityUnits"`
	Seconds    float64 `json:"seconds"`
	After      string  `json:"after,omitempty"` // the value of --after; the report excludes the items before it

	Compared []comparedView `json:"compared,omitempty"` // how many records match each flag, if no record matches all
	NotFound []string       `json:"notFound,omitempty"` // ids that were given and that no record has
	Doubtful []doubtfulView `json:"doubtful,omitempty"` // records that were left for an operator to decide

	// The tenants of the records that match; "" for the records of no tenant. Absent if all are of none.
	IDPrefixes []string `json:"idPrefixes,omitempty"`
	Tenants    []string `json:"tenants,omitempty"` // Lambda tenant ids

	// What a purge by caller left although it may hold data of the same person.
	CallersAlike  []string `json:"callersAlike,omitempty"`        // similar callers; absent if no record matched
	WithoutCaller int      `json:"withoutCaller"`                 // records without a caller that match every other flag
	RoutesWithout []string `json:"routesWithoutCaller,omitempty"` // the routes of the records without a caller

	forget    bool          // --forget
	expiresIn time.Duration // when forgotten records expire, unless they would have expired sooner; see purgeCommand.expiresIn
}

// done returns how many records were purged, or would be.
func (v purgeView) done() int {
	if v.DryRun {
		return v.Matched - v.Before
	}
	return v.Purged
}

// text prints the report as sentences.
func (v purgeView) text(to printer) {
	would, soon := "", fmt.Sprintf(", as of %s from now, or as of an earlier expiry", span(v.expiresIn))
	before := "had no answer to erase"
	if v.forget {
		before = "had been forgotten before"
	}
	if v.DryRun {
		would, soon = "would be ", ""
	}
	if v.forget {
		say(to, "%s %sforgotten%s.\n", counted(v.Forgotten, "record", "records"), would, soon)
	} else {
		say(to, "%s %serased.\n", counted(v.done(), "record", "records"), would)
	}
	if v.Parts > 0 {
		say(to, "%s deleted.\n", counted(v.Parts, "part of an answer", "parts of answers"))
	}
	const stepsErased = " (--steps erases those of released records and dead attempts)"
	const proofErased = " (the steps may be the only proof of a payment: decide such a record before you erase them, see docs/operate.md)"
	const innerErased = " (if that was erased, nothing can complete the request: see docs/idem.md)"
	for _, line := range []struct {
		n         int
		one, many string
	}{
		{v.OnlyErased, "record " + would + "erased, not forgotten: its attempt died; repeat --forget to let it expire", "records " + would + "erased, not forgotten: their attempts died; repeat --forget to let them expire"},
		{v.Undecided, "record to which --steps applies belongs to an attempt that died after a step" + proofErased, "records to which --steps applies belong to attempts that died after a step" + proofErased},
		{v.Orphans, "part had no record that referred to it", "parts had no records that referred to them"},
		{v.KeptParts, "part was left: an answer that is being stored may need it", "parts were left: an answer that is being stored may need them"},
		{v.KeptSteps, "record keeps the results of its steps" + stepsErased, "records keep the results of their steps" + stepsErased},
		{v.InnerCalls, "record is released, and a retry needs the answer of a guarded call that its handler made" + innerErased, "records are released, and retries need the answers of guarded calls that their handlers made" + innerErased},
		{v.Before, before, before},
		{v.InProgress, "is in progress, and was left", "are in progress, and were left"},
		{v.Changed, "changed meanwhile, and was left", "changed meanwhile, and were left"},
		{v.Foreign, "item is no record, or has renamed attributes (--attribute), and was left", "items are no records, or have renamed attributes (--attribute), and were left"},
	} {
		if line.n > 0 {
			say(to, "%s.\n", counted(line.n, line.one, line.many))
		}
	}
	say(to, "Looked at %s. Capacity units: %g.\n", counted(v.Looked, "item", "items"), v.Units)
	if len(v.NotFound) > 0 {
		say(to, "%s not in the table:\n", counted(len(v.NotFound), "record is", "records are"))
		list(to, v.NotFound)
	}
	if v.After != "" {
		say(to, "This report covers only the items after --after. (With --state, a report covers the whole purge.)\n")
	}
}

// stopped prints how to resume a purge that ended with err, and returns the error of the
// command. Without a journal, it also prints the doubtful records that were found, because the
// report of the resumed purge does not have them. It doesn't matter whether the last write was
// applied, because a resumed purge repeats the last page.
func (p *purgeCommand) stopped(ctx context.Context, a *app, j *journal, sum dynamostore.PurgeProgress, err error) error {
	if a.Draws {
		say(a.Err, "\n")
	}
	say(a.Err, "Stopped after %s, %d purged. ", counted(sum.Looked, "item", "items"), sum.Purged)
	switch {
	case j.file != "":
		say(a.Err, "The same command continues where it was: --state %s\n", j.file)
	case sum.After != "":
		say(a.Err, "To continue, add: --after %s\n", shellQuote(sum.After))
	default:
		say(a.Err, "\n")
	}
	if j.file == "" {
		_ = printDoubtful(a.Err, j.Found.Doubtful) // the command fails anyway
	}
	code := exitFailed
	switch {
	case ctx.Err() != nil:
		code = exitStopped
	case exitOf(err) == exitUnknown:
		code = exitUnknown
	}
	return codedError{fmt.Errorf("purge: %w", err), code}
}
