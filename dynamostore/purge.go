package dynamostore

import (
	"context"
	"iter"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// PurgeOptions select the records to purge. They also determine what the purge erases from these
// records, and how fast the purge runs. A field left at its zero value has its default.
type PurgeOptions struct {
	ScanOptions

	// Match reports whether to purge a record. Purge does not call it concurrently.
	// Default: nil, which selects all records.
	//
	// Purge also calls Match for each part of an answer. The Record then has only the record's ID,
	// Scope and Token, and in StartedAt the time at which the part was written. Purge deletes a
	// part that Match selects, except in these cases:
	//
	//   - A record refers to the part. Purge deletes such a part only with the record's answer. If
	//     a purge is interrupted, the record still refers to the parts that are left, so that the
	//     next purge can delete them.
	//   - The attempt that wrote the part is in progress, and may store a reference to it.
	//   - The part was written less than an hour ago, and its record is not completed yet. A
	//     delayed request may store a reference to it.
	//   - The item with the record's id is not a record of this package, so nobody knows whether it
	//     refers to the part.
	Match func(lambdaidem.Record) bool

	// Forget erases the answers and steps of completed and released records, and makes the records
	// expire soon: 15 minutes ([lambdaidem.MinTTL]) plus OperatorOptions.MaxSkew after the purge. A
	// record that would have expired sooner keeps its expiry. Default: false.
	//
	// After the expiry, a retry runs the handler again and repeats its effects. Before the expiry,
	// the result of a retry depends on the record:
	//   - completed: [lambdaidem.ErrAnswerUnavailable], because the answer was erased.
	//   - released with steps: ErrAnswerUnavailable too. The purge completes the record, because
	//     the handler would repeat the steps.
	//   - released without steps: the handler's answer, because the retry runs the handler.
	//
	// Forget does not apply to a record in progress, even if its attempt has died. If the attempt
	// died after a step and Steps is set, the purge erases the steps, completes the record, and
	// counts it in PurgeProgress.OnlyErased. A second purge with Forget then finds a completed
	// record and makes it expire.
	//
	// DynamoDB's TTL deletes the item at least an hour after the expiry; see
	// [lambdaidem.KeptAfterExpiry].
	Forget bool

	// Steps also erases the results of steps in released records and in records whose attempt died.
	// Without these results, the next attempt would repeat the steps. So the purge also completes
	// such a record without an answer, and no retry runs the handler again. The exception is a
	// record that has expired: it loses its steps too, but a retry runs the handler, as after any
	// expiry. Default: false, which leaves the steps and counts these records in
	// PurgeProgress.KeptSteps.
	Steps bool

	// DryRun makes the purge count the records that it would change, and change none.
	// Default: false.
	DryRun bool

	// After resumes a purge that stopped. Set it to the last PurgeProgress.After of that
	// purge. Default: "", which starts at the beginning of the table.
	After string
}

// PurgeProgress has the totals of a purge since it began or was resumed. A record counts as
// selected if PurgeOptions.Match returned true for it.
type PurgeProgress struct {
	Looked     int           // items examined, including parts of answers
	Matched    int           // selected records that the options allow the purge to change
	Purged     int           // matched records that were erased or forgotten; 0 in a dry run
	OnlyErased int           // purged records (in a dry run, matched records) that PurgeOptions.Forget does not apply to, because their attempt died; purge again to forget them
	Before     int           // matched records with nothing left to do: an earlier purge had done the same, or there was never an answer
	Changed    int           // matched records left alone because they changed during the purge
	InProgress int           // selected records in progress, which were left alone
	Parts      int           // parts of answers that were deleted
	Orphans    int           // deleted parts that no record referred to; in a dry run, those that would be deleted
	KeptParts  int           // parts left alone because a record may yet refer to them, or because the item under their record's id is not a record
	KeptSteps  int           // selected records that keep the results of their steps
	Undecided  int           // matched records in progress whose attempt died; PurgeOptions.Steps erases their steps, which may be the only proof of an effect
	InnerCalls int           // selected released records that the purge does not complete, and whose handler made a guarded call; a retry needs the stored answer of that call
	Foreign    int           // items left alone because they are not records of this package
	Units      float64       // capacity units consumed
	Elapsed    time.Duration // time since the purge began or was resumed
	After      string        // PurgeOptions.After for resuming here; "" if the purge is complete
}

// opPurge is the value of StoreError.Op in errors from Purge.
const opPurge = "purge"

// Purge erases the answers of the records that PurgeOptions.Match selects. It scans the whole
// table.
//
//   - A completed record loses its answer or failure. The record itself stays until its TTL, so no
//     retry runs the handler a second time. A retry gets [lambdaidem.ErrAnswerUnavailable].
//   - A record that is released or in progress keeps the results of its steps, because the next
//     attempt needs them, unless PurgeOptions.Steps or PurgeOptions.Forget demands otherwise.
//   - A record whose lease is live is never changed.
//   - An answer larger than Options.MaxInline is stored in parts, which are items of their own.
//     Purge deletes the parts of erased answers. It also deletes parts to which no record refers;
//     see PurgeOptions.Match.
//
// A purge changes nothing outside the table. A guard's cache (lambdaidem.Options.Cache) may replay
// an erased answer until the cache entry expires. Backups, streams and logs keep their copies. A
// record keeps its scope, which names the caller, until TTL deletes the record.
//
// Purge yields its progress after each page of the scan. PurgeProgress.After says where the next
// page begins, and is empty in the last progress. An error ends the purge: a
// *[lambdaidem.StoreError], or an error from PurgeOptions.Pace or OperatorOptions.Random. The
// current page may then be partly purged, and PurgeProgress.After resumes the purge at the
// beginning of that page.
//
// If a purge has deleted parts, repeat the purge an hour later. A request that was delayed for up
// to an hour may have written a part again, which only another purge or TTL deletes.
func (o *Operator) Purge(ctx context.Context, optFns ...func(*PurgeOptions)) iter.Seq2[PurgeProgress, error] {
	var opts PurgeOptions
	for _, fn := range optFns {
		fn(&opts)
	}
	opts.resolve()
	return func(yield func(PurgeProgress, error) bool) {
		p := purge{o: o, opts: opts, startedAt: time.Now(), progress: PurgeProgress{After: opts.After}}
		for {
			err := p.page(ctx)
			if !yield(p.progress, err) || err != nil || p.progress.After == "" {
				return
			}
		}
	}
}

// purge is the state of one call of Operator.Purge.
type purge struct {
	o         *Operator
	opts      PurgeOptions
	startedAt time.Time

	mu       sync.Mutex // guards progress while goroutines purge the records of a page
	progress PurgeProgress
}

// purgesAtOnce is the number of records of a page that are purged concurrently.
const purgesAtOnce = 8

// page purges one page of the table. It advances progress.After only if the whole page was
// purged.
func (p *purge) page(ctx context.Context) error {
	found, err := p.o.s.scanAll(ctx, p.progress.After, p.opts.PageSize)
	if err != nil {
		return err
	}
	if err := p.spend(ctx, found.units); err != nil {
		return err
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(purgesAtOnce)
	for _, itm := range found.items {
		if rec := itm.record(); p.opts.Match == nil || p.opts.Match(rec) {
			if p.shouldPurge(itm, found.clock) {
				group.Go(func() error { return p.record(gctx, itm, found.clock) })
			}
		}
	}
	err = group.Wait()
	if err == nil { // p.record may have deleted some of these parts; deleteOrphan does not count those
		err = p.deleteOrphans(ctx, found.parts, found.clock.now())
	}
	p.progress.Elapsed = time.Since(p.startedAt)
	if err != nil {
		return err
	}
	p.progress.Looked += found.looked
	p.progress.Foreign += len(found.foreign)
	p.progress.After = found.nextPosition
	return nil
}

// spend adds the capacity units of one request to PurgeProgress.Units. It then calls
// ScanOptions.Pace, which may wait to limit the rate.
func (p *purge) spend(ctx context.Context, units float64) error {
	p.mu.Lock()
	p.progress.Units += units
	p.mu.Unlock()
	return p.opts.Pace(ctx, units)
}

// count calls the function add, which changes the progress. During the call, count holds the
// lock p.mu, because several goroutines count records at the same time.
func (p *purge) count(add func(*PurgeProgress)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	add(&p.progress)
}
