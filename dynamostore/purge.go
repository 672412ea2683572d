package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// PurgeOptions say what a purge is of, and how fast it goes. The zero value of
// every field is its default.
type PurgeOptions struct {
	ScanOptions

	// Match says which records are purged. It is asked one at a time. Default: nil,
	// all of them.
	Match func(lambdaidem.Record) bool

	// Forget erases answers and steps of completed and released records and lets the
	// records expire 15 minutes ([lambdaidem.MinTTL]) and OperatorOptions.MaxSkew later:
	// a retry then runs again, and has its effects a second time. Until then a retry of
	// a completed record gets [lambdaidem.ErrAnswerUnavailable].
	//
	// It takes that long because the purge's own write may be delayed on its way, for as
	// long as its signature is valid, and must not let a record expire in the past. TTL
	// deletes the item an hour later at the earliest ([lambdaidem.KeptAfterExpiry]),
	// so that it refuses requests that were made before and arrive late. Default false.
	Forget bool

	// Steps also erases the results of steps: of released records, and of records
	// whose attempt died. An attempt without them would repeat the steps, so such a
	// record is completed without an answer, and no retry runs the handler again.
	// Default false: these records keep their steps, and are counted in
	// PurgeProgress.KeptSteps.
	Steps bool

	// DryRun changes nothing, and counts what would be.
	DryRun bool

	// After resumes a purge where another one stopped: its Progress.After. Default:
	// "", from the beginning.
	After string
}

// PurgeProgress is what a purge has done so far, since it began or was resumed.
type PurgeProgress struct {
	Looked     int           // items that it looked at, parts of answers among them
	Matched    int           // records that Match chose, and that can be purged
	Purged     int           // of these, erased or forgotten: in a dry run none
	Before     int           // of these, erased already
	Changed    int           // of these, left since they changed meanwhile
	InProgress int           // records that Match chose and that are in progress: never touched
	Parts      int           // of answers, deleted
	Orphans    int           // of these, or found in a dry run: parts whose attempt never completed
	KeptParts  int           // parts of attempts that may still complete: left alone
	KeptSteps  int           // records that Match chose and that keep results of steps
	InnerCalls int           // released records that Match chose whose handler made a guarded call: a retry needs that call's answer
	Foreign    int           // items that are no records: left alone
	Units      float64       // of capacity, consumed
	Elapsed    time.Duration //
	After      string        // resumes it here; "": it is done
}

// StoreError.Op of a purge.
const opPurge = "purge"

// Purge erases what the records that Match chooses hold of their callers. It scans
// the whole table.
//
//   - A completed record loses its answer, or the text of its failure, and the parts
//     of it. The record itself stays until its TTL, so that no retry runs a second
//     time: a retry gets [lambdaidem.ErrAnswerUnavailable].
//   - Parts that no record names are deleted. An attempt leaves them behind if it dies
//     before it completes, loses an optimistic race, or its transaction is rejected.
//     They are chosen by a Record with ID, Scope and Token, and in StartedAt the time
//     at which they were written. A part that may still become part of an answer stays:
//     one whose attempt holds the lease, and one that was written within the last hour,
//     unless an attempt completed the record. An operator may settle a settled record
//     again, and writes the parts of the new answer before the record names them.
//   - Results of steps stay in records that are released or in progress, because the
//     next attempt needs them. PurgeOptions.Steps erases those too.
//   - A record in progress is not changed otherwise, and not at all while its lease is
//     live. PurgeOptions.Forget lets records expire, released ones included.
//
// A purge does not reach what is outside the table: a guard's cache
// (lambdaidem.Options.Cache) may replay an answer until it ages out, and backups,
// streams and logs keep what they have. Nor does it erase a record's scope, which
// names the caller; TTL does once the record has expired.
//
// Every write is conditional on the token and the state that were read. A record is
// written before its parts are deleted, and names them until they are gone, so no
// reader is left with half an answer, and a later purge finishes one that was
// interrupted.
//
// The request that writes a part has no condition. If it is delayed and arrives after the
// part was deleted, it writes the part again: no record names the part then, and only
// another purge, or TTL, deletes it. Repeat a purge that has deleted parts an hour later.
//
// Purge yields its progress after each page; everything before Progress.After is done
// then, and the last Progress.After is empty. An error, a StoreError or one of Pace,
// ends the purge with its page done in part: resume from the last progress.
func (o *Operator) Purge(ctx context.Context, optFns ...func(*PurgeOptions)) iter.Seq2[PurgeProgress, error] {
	var opts PurgeOptions
	for _, fn := range optFns {
		fn(&opts)
	}
	opts.resolve()
	return func(yield func(PurgeProgress, error) bool) {
		p := purge{o: o, opts: opts, began: time.Now(), progress: PurgeProgress{After: opts.After}}
		for {
			err := p.page(ctx)
			if !yield(p.progress, err) || err != nil || p.progress.After == "" {
				return
			}
		}
	}
}

// purge is one purge that is in progress.
type purge struct {
	o     *Operator
	opts  PurgeOptions
	began time.Time

	mu       sync.Mutex // progress, while a page is worked on
	progress PurgeProgress
}

// purgesAtOnce is how many records of a page are written at the same time.
const purgesAtOnce = 8

// page works on one page of the table. Progress.After moves on if all of it is done.
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
	for _, it := range found.items {
		if rec := it.record(); p.opts.Match == nil || p.opts.Match(rec) {
			if p.chosen(it, found.clock) {
				group.Go(func() error { return p.record(gctx, it, found.clock) })
			}
		}
	}
	err = group.Wait()
	if err == nil { // after the records: they have deleted the parts that they name
		err = p.orphans(ctx, found.parts, found.clock.At())
	}
	p.progress.Elapsed = time.Since(p.began)
	if err != nil {
		return err
	}
	p.progress.Looked += found.looked
	p.progress.Foreign += found.foreign
	p.progress.After = found.next
	return nil
}

// spend counts what a request consumed, and waits if that is too fast.
func (p *purge) spend(ctx context.Context, units float64) error {
	p.mu.Lock()
	p.progress.Units += units
	p.mu.Unlock()
	return p.opts.Pace(ctx, units)
}

// count adds to the progress.
func (p *purge) count(add func(*PurgeProgress)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	add(&p.progress)
}

// chosen counts a record that Match chose, and reports whether it is to be purged.
func (p *purge) chosen(it *item, clock Inspected) bool {
	do := false
	p.count(func(sum *PurgeProgress) {
		closes := p.closes(it, clock)
		forgets := p.opts.Forget && it.Status == lambdaidem.Released
		if len(it.Steps) > 0 && !closes && !forgets {
			sum.KeptSteps++
		}
		if it.Status == lambdaidem.Released && it.Bound == lambdaidem.BoundByInnerCall {
			sum.InnerCalls++
		}
		switch {
		case closes:
			sum.Matched++
			do = !p.opts.DryRun
		case it.Status == lambdaidem.InProgress:
			sum.InProgress++
		case it.Status == lambdaidem.Released && !p.opts.Forget:
		case p.isDone(it, clock.At()):
			sum.Matched++
			sum.Before++
		default:
			sum.Matched++
			do = !p.opts.DryRun
		}
	})
	return do
}

// isDone reports whether a purge has nothing left to do with a record.
func (p *purge) isDone(it *item, now time.Time) bool {
	if p.opts.Forget {
		return p.wasForgotten(it, now) && it.Erasing == nil
	}
	return it.isErased() && it.Erasing == nil
}

// wasForgotten reports whether a purge has forgotten the record: it holds neither an
// answer nor steps, and expires as soon as if it were forgotten now. A retry that took
// the record over before it expired may have stored new ones, and changed the expiry.
func (p *purge) wasForgotten(it *item, now time.Time) bool {
	n := len(it.Operations)
	holdsNothing := it.isErased() || it.Status == lambdaidem.Released && len(it.Steps) == 0
	return n > 0 && it.Operations[n-1].What == OperationForgotten && holdsNothing && it.Expiration.n <= p.forgottenAt(now).n
}

// forgottenAt returns the TTL attribute of a record that is forgotten now. It expires
// when the request that says so can't arrive any more, by every clock: if that came
// later, the record would have expired in the past, and would not refuse what was
// sent meanwhile.
func (p *purge) forgottenAt(now time.Time) integer {
	return deletionOf(now.Add(lambdaidem.MinTTL + p.o.opts.MaxSkew + time.Second))
}

// isErased reports whether a completed record has no answer left to erase.
func (it *item) isErased() bool {
	return it.Status == lambdaidem.Completed && it.Failure != nil && it.Failure.Code == lambdaidem.ErrAnswerUnavailable
}

// record purges one record. It stops at the first write that is refused because the
// record has changed.
func (p *purge) record(ctx context.Context, it *item, clock Inspected) error {
	for _, write := range p.writes(it, clock) {
		if done, err := write(ctx); err != nil || !done {
			if err == nil {
				p.count(func(sum *PurgeProgress) { sum.Changed++ })
			}
			return err
		}
	}
	p.count(func(sum *PurgeProgress) { sum.Purged++ })
	return nil
}

// writes returns what purges a record, in order. Each write reports whether the record
// was still as it was seen.
func (p *purge) writes(it *item, clock Inspected) (all []func(context.Context) (bool, error)) {
	add := func(write func(context.Context) (bool, error)) { all = append(all, write) }
	if p.closes(it, clock) {
		add(func(ctx context.Context) (bool, error) { return p.closeWithoutSteps(ctx, it, clock) })
		return all
	}
	hasParts := it.Erasing != nil || it.Parts != nil && it.Parts.Count > 0
	switch {
	case p.opts.Forget && !p.wasForgotten(it, clock.At()):
		add(func(ctx context.Context) (bool, error) { return p.forget(ctx, it, clock.At()) })
	case !p.opts.Forget && !it.isErased():
		add(func(ctx context.Context) (bool, error) { return p.erase(ctx, it, clock.At()) })
	}
	if hasParts {
		add(func(ctx context.Context) (bool, error) { return true, p.deleteParts(ctx, it) })
		add(func(ctx context.Context) (bool, error) { return p.partsGone(ctx, it) })
	}
	return all
}

// isAsSeen: the record has the same token and state as when it was read. What is in
// progress is in neither of the states that are purged, and what runs again has
// another token.
const isAsSeen = "#token = :seen_token AND #status = :seen_state"

// expiresNoSooner: the record expires no sooner than the write says. Of two purges that
// forget a record, the later one must not bring it back.
const expiresNoSooner = "(attribute_not_exists(#expiration) OR #expiration >= :expiration)"

func (it *item) asSeen() attributes {
	return attributes{":seen_token": str(it.Token), ":seen_state": str(it.Status)}
}

// erase takes the answer away. The record names its parts until they are deleted.
func (p *purge) erase(ctx context.Context, it *item, now time.Time) (bool, error) {
	return p.takeAnswer(ctx, it, p.without(it, OperationErased, it.Token, now), isAsSeen)
}

// forget takes the answer and the steps away and lets the record expire. It deletes
// nothing: a request that is still on its way would find no record to refuse it.
func (p *purge) forget(ctx context.Context, it *item, now time.Time) (bool, error) {
	own, err := p.o.newToken()
	if err != nil {
		return false, err
	}
	next := p.without(it, OperationForgotten, own, now)
	next.Token = it.Token
	if it.Status == lambdaidem.Released {
		next.Token, next.Failure = own, nil // no takeover that was sent before succeeds
	}
	// Not later than the record expires anyway.
	if next.Expiration = p.forgottenAt(now); it.Expiration.there {
		next.Expiration.n = min(next.Expiration.n, it.Expiration.n)
	}
	return p.takeAnswer(ctx, it, next, isAsSeen+" AND "+expiresNoSooner, attrSteps, attrToken, attrExpiration)
}

// without returns the item for the record after a purge: it has no answer, and the
// purge is added to its list of operations.
func (p *purge) without(it *item, what OperationKind, token string, now time.Time) *item {
	next := &item{
		ID:      it.ID,
		Failure: lambdaidem.NoAnswer("the operation was carried out, and its answer was erased since"),
		Operations: withOperation(it.Operations, Operation{
			What: what, By: p.o.name, Reason: p.o.reason, At: now.Truncate(time.Millisecond), Attempt: int(it.Attempt.n), Token: token,
		}),
		Erasing: it.Erasing,
	}
	if it.Parts != nil && it.Parts.Count > 0 {
		next.Erasing = it.Parts
	}
	return next
}

// takeAnswer writes a record that has lost its answer, and the attributes named too.
func (p *purge) takeAnswer(ctx context.Context, it, next *item, condition string, also ...string) (bool, error) {
	attrs := append(also, attrData, attrFailure, attrEncoding, attrParts, attrErasing, attrOperations)
	done, err := p.update(ctx, &change{also: attrs, condition: condition}, next, it.asSeen())
	if it.Erasing = next.Erasing; next.Token != "" {
		it.Token = next.Token
	}
	return done, err
}

// partsGone takes the names of the parts away.
func (p *purge) partsGone(ctx context.Context, it *item) (bool, error) {
	return p.updateAsSeen(ctx, &item{ID: it.ID}, it, attrErasing)
}

// updateAsSeen writes some attributes of a record, if the record is as it was seen.
func (p *purge) updateAsSeen(ctx context.Context, next, seen *item, attrs ...string) (bool, error) {
	return p.update(ctx, &change{also: attrs, condition: isAsSeen}, next, seen.asSeen())
}

// update sends a conditional update, and reports whether the record is as it says.
func (p *purge) update(ctx context.Context, c *change, next *item, values attributes) (bool, error) {
	out, fate, err := p.o.s.change(ctx, c, next, values)
	if refused, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		// What a refused write consumes is not said; it depends on the item's size.
		return len(refused.Item) == 0 || p.o.s.isWritten(refused.Item, next), p.spend(ctx, 1)
	}
	if err != nil {
		return false, failed(opPurge, fate, err)
	}
	return true, p.spend(ctx, unitsOf(out.ConsumedCapacity))
}

// isWritten reports whether the item that refused a write is what an earlier attempt
// on the wire made of it.
func (s *Store) isWritten(stands attributes, next *item) bool {
	it, err := s.layout.parse(stands)
	n := len(next.Operations)
	return err == nil && n > 0 && slices.ContainsFunc(it.Operations, func(did Operation) bool {
		last := next.Operations[n-1]
		return did.What == last.What && did.Token == last.Token && did.At.Equal(last.At)
	})
}

// deleteParts deletes the parts of an answer. Their keys are bound to it, so they
// are nobody else's.
func (p *purge) deleteParts(ctx context.Context, it *item) error {
	of := it.Erasing
	for n := range of.Count {
		out, fate, err := p.o.s.deleteItem(ctx, &dynamodb.DeleteItemInput{Key: p.o.s.key(partID(it.ID, of.Checksum, n+1))})
		if err != nil {
			return failed(opPurge, fate, fmt.Errorf("part %d of %d of the answer: %w", n+1, of.Count, err))
		}
		p.count(func(sum *PurgeProgress) { sum.Parts++ })
		if err := p.spend(ctx, unitsOf(out.ConsumedCapacity)); err != nil {
			return err
		}
	}
	return nil
}
