package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// purgeCommand has the flags of the purge command.
type purgeCommand struct {
	filter
	forget, steps bool
	dryRun        bool
	rate          float64
	maxSkew       time.Duration
	state         string // the file of the journal; "" if progress is not saved
	after         string // the key of the item to continue after; "" to begin at the start
	operatorFlags
	confirmation
}

func (p *purgeCommand) flags(f *pflag.FlagSet) {
	f.StringVar(&p.Namespace, "namespace", "", "records of this namespace")
	f.StringVar(&p.Route, "route", "", `records of this route, "POST /payments", or of this operation`)
	f.StringVar(&p.Caller, "caller", "", "records of this caller, as show prints it")
	f.StringVar(&p.Tenant, "tenant", "", "records of this Lambda tenant id")
	f.StringVar(&p.IDPrefix, "id-prefix", "", "records of guards with this Options.IDPrefix")
	f.StringVar(&p.Older, "older-than", "", "records that were completed (or begun, if released) longer ago than this: 36h, 30d")
	f.StringVar(&p.Since, "since", "", "records that were completed (or begun, if released) at this time or later: 2026-11-22T03:00:00Z; with --forget: the point in time to which other data was restored")
	f.StringVar(&p.Until, "until", "", "with --forget and --since: a time before the functions began to write to the restored data, best 31 minutes after their last invocation has ended")
	f.BoolVar(&p.All, "all", false, "all records; required if no other flag selects records")
	f.BoolVar(&p.forget, "forget", false, "also make these records, and released ones, expire in 15 minutes plus --max-skew: a retry then runs the handler a SECOND time")
	f.BoolVar(&p.steps, "steps", false, "also erase the results of steps of records that are released or whose attempt died: no retry of these records runs again")
	f.BoolVar(&p.dryRun, "dry-run", false, "change nothing; count what would be changed")
	f.Float64Var(&p.rate, "rate", 100, "the maximum capacity units per second, reads and writes together")
	maxSkewFlag(f, &p.maxSkew)
	f.StringVar(&p.state, "state", "", "a file to save the progress in, so that the same command continues where it was stopped or killed")
	f.StringVar(&p.after, "after", "", "continue after this point, which a purge that stopped has printed")
	p.operatorFlags.flags(f)
	p.confirmation.flags(f)
}

func newPurge(a *app) *cobra.Command {
	var p purgeCommand
	c := &cobra.Command{
		Use:   "purge [RECORD]...",
		Short: "Erase answers by scope, caller and age; the records stay, so that nothing runs twice",
		Long: `Purge the records that match all of the flags given, or those with the ids given. Purge erases answers, the texts of
failures and all parts of answers, including parts that attempts left behind when they
died. The records stay until their TTL: a retry gets "answer unavailable" and never runs
a second time.

Released records and records in progress keep the results of their steps, because the
next attempt needs them. --steps erases those too, and completes the records without an
answer: no retry of them runs again. Records with a live lease are never changed.

--forget also makes the records expire 15 minutes and --max-skew later, when no request
that was sent before can still arrive. A retry after that runs the handler, and has its
effects a second time. DynamoDB deletes the records later. Functions with a cache
(Options.Cache) may replay an answer until it leaves the cache. A record whose attempt
died after a step is only erased, by --steps; repeat --forget to let it expire too.

--forget --since POINT --until UNTIL is for other data that was restored to POINT while this
table was kept. Stop the functions before they use the restored data. The purge forgets the
records whose writes are certainly lost: those from POINT to UNTIL. It leaves and lists the
records near these times, and those of several attempts, because their times don't say
whether the restored data has their writes. Compare each with the restored data, and forget
those whose writes are missing by their ids.

If a purge has deleted parts of answers, repeat it an hour later: a delayed request can
write a deleted part again. No record refers to such a part, and it stays until its TTL.

purge scans the whole table, at --rate capacity units per second. It can be stopped or
killed at any time. With --state, the same command then continues where it was. Without
--state, it starts again, and skips the records that are already purged.`,
		Args: arguments(cobra.ArbitraryArgs),
		RunE: func(c *cobra.Command, args []string) error {
			p.IDs = strings.Join(args, " ")
			return p.run(a, c)
		},
	}
	p.flags(c.Flags())
	return c
}

// givenNonEmpty returns an error if one of the flags was given with an empty value, for example
// because a shell variable is not set. The command would otherwise select more records than its
// user meant, or the record of another tenant.
func givenNonEmpty(set *pflag.FlagSet, names ...string) error {
	for _, name := range names {
		if f := set.Lookup(name); f.Changed && f.Value.String() == "" {
			return fmt.Errorf("--%s is empty; leave the flag out, or give it a value", name)
		}
	}
	return nil
}

func (p *purgeCommand) run(a *app, c *cobra.Command) error {
	ctx := c.Context()
	if err := givenNonEmpty(c.Flags(), "namespace", "route", "caller", "tenant", "id-prefix", "since", "until", "older-than"); err != nil {
		return usage(err)
	}
	ages, err := p.check()
	if err != nil {
		return usage(err)
	}
	s, client, err := a.store(ctx)
	if err != nil {
		return err
	}
	o, err := p.signer(s)
	if err != nil {
		return err
	}
	journal, err := p.journal(ctx, a, client)
	if err != nil {
		return err
	}
	if p.state != "" && journal.After != "" {
		say(a.Err, "Continuing the purge that stopped at %s, after %s. What was written since then in that part of the table stays; remove %s to begin anew.\n",
			journal.Kept.Format(time.RFC3339), counted(journal.Sum.Looked, "item", "items"), p.state)
	}
	if !p.dryRun {
		if err := p.confirm(ctx, a); err != nil {
			return err
		}
	}
	clock, err := s.Inspect(ctx, "lambdaidem#clock") // reads only the time; no record has this id
	if err != nil {
		return fmt.Errorf("ask for the database's clock: %w", err)
	}
	if ages.until.After(clock.Now.Add(p.maxSkew + time.Second)) { // Now is rounded down to a second
		return usage(fmt.Errorf("--until is %s, and the database's time is %s; give a time that has passed", p.Until, clock.Now.Format(time.RFC3339)))
	}
	match := p.matcher(ages, clock.Now, journal.Found)
	bar := a.bar(ctx, client, a.table)
	before, sum := journal.Sum, journal.Sum
	for progress, err := range o.Purge(ctx, func(o *dynamostore.PurgeOptions) {
		o.Match, o.Forget, o.Steps, o.DryRun, o.After, o.Pace = match.match, p.forget, p.steps, p.dryRun, journal.After, pace(p.rate)
	}) {
		sum = add(before, progress)
		if err == nil {
			err = journal.keep(sum)
		}
		if bar != nil {
			bar.Describe(fmt.Sprintf("%d purged", sum.Purged))
			_ = bar.Set(sum.Looked) // the error means that the terminal can't show the bar
		}
		if err != nil {
			return p.stopped(ctx, a, journal, sum, err)
		}
	}
	if bar != nil {
		_ = bar.Finish() // the error means that the terminal can't show the bar
		say(a.Err, "\n")
	}
	if err := journal.done(); err != nil {
		return err
	}
	return p.report(a, sum, match)
}

// journal opens the journal in the file of --state. Without --state, it returns a journal
// that saves nothing.
func (p *purgeCommand) journal(ctx context.Context, a *app, client *dynamodb.Client) (*journal, error) {
	if p.state == "" {
		return &journal{After: p.after, Found: newFindings()}, nil
	}
	identity, err := p.identity(ctx, &a.connection, client)
	if err != nil {
		return nil, err
	}
	j, err := openJournal(p.state, identity)
	return j, usage(err)
}

// check returns an error if the flags are invalid, and otherwise the parsed values of
// --older-than, --since, --until and --max-skew.
func (p *purgeCommand) check() (a ages, err error) {
	a.maxSkew = p.maxSkew
	if a.least, err = parseAge(p.Older); err == nil {
		if a.since, err = parseTime("--since", p.Since); err == nil {
			a.until, err = parseTime("--until", p.Until)
		}
	}
	switch {
	case err != nil:
	case p.forget && p.Since != "" && p.Until == "":
		err = errors.New("--forget with --since needs --until, a time before the functions began to write to the restored data: the writes of later records are not lost, and a retry of one would write a second time")
	case p.Until != "" && (!p.forget || p.Since == ""):
		err = errors.New("--until is for --forget with --since; leave it out")
	case p.Until != "" && !a.until.After(a.since):
		err = fmt.Errorf("--until is %s; it must be after --since", p.Until)
	case p.IDs != "" && p.filter != filter{IDs: p.IDs}:
		err = errors.New("records are given by their ids, and by flags; leave out the ids or the flags")
	case checkRate(p.rate) != nil:
		err = checkRate(p.rate)
	case p.maxSkew < 0:
		err = fmt.Errorf("--max-skew is %v; it must be at least 0", p.maxSkew)
	case p.All && p.Namespace+p.Route+p.Caller+p.Tenant+p.IDPrefix != "":
		err = errors.New("--all is of all records; leave it out, or the others")
	case p.filter == filter{}:
		err = errors.New("which records? Give some of --namespace, --route, --caller, --tenant, --id-prefix, --older-than and --since, or --all, or ids of records")
	case p.state != "" && p.after != "":
		err = errors.New("--state knows where to go on; give no --after")
	}
	return a, err
}

// signer returns the Operator that purges. A dry run needs no --reason, because it changes
// no record.
func (p *purgeCommand) signer(s *dynamostore.Store) (*dynamostore.Operator, error) {
	if p.dryRun && p.reason == "" {
		p.reason = "dry run"
	}
	return p.operator(s, func(o *dynamostore.OperatorOptions) { o.MaxSkew = maxSkewOption(p.maxSkew) })
}

func (p *purgeCommand) confirm(ctx context.Context, a *app) error {
	if !p.forget {
		return p.ask(ctx, a, "erase", "This erases the answers %s, for good. The records stay.", p.says())
	}
	say(a.Err, "WARNING: --forget lets records expire, in %s. A retry that comes after that runs again, and has its effects a SECOND time.\n", span(p.expiresIn()))
	return p.ask(ctx, a, "forget", "This forgets the records %s.", p.says())
}

// expiresIn returns the time from a purge with --forget to the expiry of the records; see
// [dynamostore.PurgeOptions]. A record that expires sooner keeps its expiry.
func (p *purgeCommand) expiresIn() time.Duration { return lambdaidem.MinTTL + p.maxSkew }

// bar returns a progress bar, or nil if the output is not a terminal. The length of the bar
// is the number of items in the table, which DynamoDB updates about every six hours
// ("DescribeTable").
func (a *app) bar(ctx context.Context, client *dynamodb.Client, table string) *progressbar.ProgressBar {
	if !a.Draws {
		return nil
	}
	items := int64(-1)
	if out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(table)}); err == nil && aws.ToInt64(out.Table.ItemCount) > 0 {
		items = *out.Table.ItemCount
	}
	return newBar(a.Err, items)
}
