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

// PurgeOptions select the records that a purge changes. They also determine what the purge
// erases and how fast it runs. The zero value of each field selects its default.
type PurgeOptions struct {
	ScanOptions

	// Match reports whether to purge a record. Purge does not call it concurrently.
	// Default: nil, which selects all records.
	Match func(lambdaidem.Record) bool

	// Forget erases the answers and steps of completed and released records, and makes the
	// records expire soon: 15 minutes ([lambdaidem.MinTTL]) plus OperatorOptions.MaxSkew
	// after the purge. A record that would have expired sooner keeps its expiry. Default:
	// false.
	//
	// After the expiry, a retry runs the handler again and repeats its effects. Before the
	// expiry, the result of a retry depends on the record:
	//   - A completed record has no answer any more, so a retry gets
	//     [lambdaidem.ErrAnswerUnavailable].
	//   - A released record without steps stays released, so a retry runs the handler.
	//   - A released record with steps becomes completed, and a retry gets
	//     ErrAnswerUnavailable. Without the results of the steps, the handler would repeat
	//     the steps.
	//
	// The record can't expire sooner, because the purge's own request may be delayed: AWS
	// accepts a request for 15 minutes after it was signed. If the purge's request arrived
	// after the new expiry, a delayed request of an attempt that has ended could lock the
	// record.
	//
	// DynamoDB's TTL deletes the item at least an hour ([lambdaidem.KeptAfterExpiry]) after
	// the expiry. If a request was sent before the expiry and arrives during that hour, it
	// still finds the item and is refused.
	Forget bool

	// Steps also erases the results of steps in released records and in records whose
	// attempt died. Without these results, the next attempt would repeat the steps. So
	// the purge completes such a record without an answer, and no retry runs the handler
	// again. Default: false, which leaves the steps and counts these records in
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
	Before     int           // matched records to which an earlier purge had already done the same
	Changed    int           // matched records left alone because they changed during the purge
	InProgress int           // selected records in progress, which were left alone
	Parts      int           // parts of answers that were deleted
	Orphans    int           // deleted parts that no record referred to; in a dry run, those that would be deleted
	KeptParts  int           // parts left alone because a record may yet refer to them, or because the item under their record's id is not a record
	KeptSteps  int           // selected records that keep the results of their steps
	Undecided  int           // matched records in progress whose attempt died; PurgeOptions.Steps erases their steps, which may be the only proof of an effect
	InnerCalls int           // selected released records whose handler made a guarded call; a retry needs the stored answer of that call
	Foreign    int           // items left alone because they are not records of this package
	Units      float64       // capacity units consumed
	Elapsed    time.Duration // time since the purge began or was resumed
	After      string        // PurgeOptions.After for resuming here; "" if the purge is complete
}

// opPurge is the value of StoreError.Op in errors from Purge.
const opPurge = "purge"

// Purge erases the answers of the records that PurgeOptions.Match selects. It scans the
// whole table.
//
//   - A completed record loses its answer, or the text of its failure, and all parts of
//     the answer. The record itself stays until its TTL, so no retry runs the handler a
//     second time. A retry gets [lambdaidem.ErrAnswerUnavailable].
//   - A part of an answer is deleted if no record refers to the part, unless one of the next
//     two items says that it stays. An attempt leaves such parts behind if it dies before it
//     completes, if another attempt completes first under lambdaidem.Options.Optimistic, or
//     if its transaction is rejected. For each part, Purge calls Match with a Record that has
//     only the record's ID, Scope and Token, and in StartedAt the time at which the part was
//     written.
//   - A part stays as long as an attempt or an operator may still complete the record with it:
//     while the record is in progress under the token of the attempt that wrote the part, and
//     for an hour after the part was written. The hour does not apply once an attempt has
//     completed the record. It does apply to a record that an operator settled, because an
//     operator may replace the answer, and writes the parts of the new answer before the
//     record refers to them.
//   - A part also stays if the item with the id of the part's record is not a record of this
//     package.
//   - The results of steps stay in records that are released or in progress, because the
//     next attempt needs them. PurgeOptions.Steps erases these results too, and
//     PurgeOptions.Forget erases those of released records.
//   - A record in progress is changed only by PurgeOptions.Steps, and never while its
//     lease is live.
//   - PurgeOptions.Forget makes completed and released records expire.
//
// A purge changes nothing outside the table. A guard's cache (lambdaidem.Options.Cache) may
// replay an erased answer until the cache entry expires. Backups, streams and logs keep
// their copies. A purge also leaves the record's scope, which names the caller, until TTL
// deletes the record.
//
// Every write to a record is conditional on the token and the state that were read. Purge
// first removes the answer from the record, then deletes the parts. Until all parts are
// deleted, the record keeps a list of them. So no reader gets an incomplete answer, and a
// later purge can finish a purge that was interrupted.
//
// The request that writes a part has no condition. If the request is delayed until after the
// part was deleted, it writes the part again. No record refers to the part then, and only
// another purge or TTL deletes it. If a purge has deleted parts, repeat the purge an hour
// later.
//
// Purge yields its progress after each page of the scan. PurgeProgress.After says where the
// next page begins. It is empty in the last progress. An error ends the purge: a
// *[lambdaidem.StoreError], or an error of ScanOptions.Pace or OperatorOptions.Random. The
// current page may then be partly purged. The progress that is yielded with the error resumes
// the purge at the beginning of that page.
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

// purge is the state of one call of Operator.Purge.
type purge struct {
	o     *Operator
	opts  PurgeOptions
	began time.Time

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
	for _, it := range found.items {
		if rec := it.record(); p.opts.Match == nil || p.opts.Match(rec) {
			if p.shouldPurge(it, found.clock) {
				group.Go(func() error { return p.record(gctx, it, found.clock) })
			}
		}
	}
	err = group.Wait()
	if err == nil { // p.record may have deleted some of these parts; deleteOrphan does not count those
		err = p.deleteOrphans(ctx, found.parts, found.clock.At())
	}
	p.progress.Elapsed = time.Since(p.began)
	if err != nil {
		return err
	}
	p.progress.Looked += found.looked
	p.progress.Foreign += len(found.foreign)
	p.progress.After = found.next
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

// shouldPurge counts a record that Match selected, and reports whether the purge changes
// it.
func (p *purge) shouldPurge(it *item, clock Inspected) bool {
	do := false
	p.count(func(sum *PurgeProgress) {
		erasesSteps := p.erasesSteps(it, clock)
		forgets := p.opts.Forget && it.Status == lambdaidem.Released
		if len(it.Steps) > 0 && !erasesSteps && !forgets {
			sum.KeptSteps++
		}
		if it.Status == lambdaidem.Released && it.Bound == lambdaidem.BoundByInnerCall {
			sum.InnerCalls++
		}
		switch {
		case erasesSteps:
			sum.Matched++
			if it.Status == lambdaidem.InProgress {
				sum.Undecided++
			}
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

// isDone reports whether an earlier purge has already done everything to the record that
// this purge would do.
func (p *purge) isDone(it *item, now time.Time) bool {
	if p.opts.Forget {
		return p.wasForgotten(it, now) && it.Erasing == nil
	}
	return it.isErased() && it.Erasing == nil
}

// wasForgotten reports whether an earlier purge has forgotten the record (see
// PurgeOptions.Forget), so that this purge need not do it again. That is so if:
//   - the latest operation in the record is an OperationForgotten,
//   - the record has no answer and no steps, and
//   - the record's expiry is not later than the one that this purge would set.
//
// The first condition is not enough: a retry that ran after the earlier purge may have stored an
// answer or steps again, and set a later expiry.
func (p *purge) wasForgotten(it *item, now time.Time) bool {
	n := len(it.Operations)
	holdsNothing := it.isErased() || it.Status == lambdaidem.Released && len(it.Steps) == 0
	return n > 0 && it.Operations[n-1].What == OperationForgotten && holdsNothing && it.Expiration.n <= deletionOf(p.forgottenAt(now)).n
}

// forgottenAt returns the expiry that a purge sets if it forgets a record now. The expiry is
// MinTTL (15 minutes) from now, plus MaxSkew for a clock that is ahead, plus a second for
// rounding. The purge's request must arrive before this expiry, even if the request is delayed.
// MinTTL is enough for that, because AWS refuses a request more than MinTTL after it was signed.
//
// If the purge's request arrived after the expiry, a delayed claim could lock the record. A claim
// is the write that locks a record, and an attempt may send it twice. The first copy is refused,
// because the record has not expired yet, and the attempt ends. Then the purge's request arrives,
// and after it the second copy of the claim. The condition of a claim compares the expiry with
// the time at which the claim was made. If the new expiry is earlier than that time, the second
// copy locks the record, although no attempt is running.
func (p *purge) forgottenAt(now time.Time) time.Time {
	return now.Add(lambdaidem.MinTTL + p.o.opts.MaxSkew + time.Second)
}

// isErased reports whether the record is completed and has no answer to erase: the answer
// was erased, or there never was one (lambdaidem.NoAnswer).
func (it *item) isErased() bool {
	return it.Status == lambdaidem.Completed && it.Failure != nil && it.Failure.Code == lambdaidem.ErrAnswerUnavailable
}

// record purges one record. It calls the functions that p.writes returns, in order.
// If one of them returns false, the record has changed since it was read: the method stops and
// counts the record in PurgeProgress.Changed.
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

// writes returns the functions that purge a record. The caller calls them in this
// order. Each function sends requests, and returns false if DynamoDB refused a request because
// the record has changed since it was read. The caller must then stop.
func (p *purge) writes(it *item, clock Inspected) (all []func(context.Context) (bool, error)) {
	add := func(write func(context.Context) (bool, error)) { all = append(all, write) }
	switch {
	case p.erasesSteps(it, clock):
		add(func(ctx context.Context) (bool, error) { return p.eraseSteps(ctx, it, clock) })
		return all
	case p.opts.Forget && it.Status == lambdaidem.Released && len(it.Steps) > 0:
		add(func(ctx context.Context) (bool, error) { return p.forgetSteps(ctx, it, clock) })
		return all
	}
	hasParts := it.Erasing != nil || it.Parts != nil && it.Parts.Count > 0
	switch {
	case p.opts.Forget && !p.wasForgotten(it, clock.At()):
		add(func(ctx context.Context) (bool, error) { return p.forget(ctx, it, clock.latest()) })
	case !p.opts.Forget && !it.isErased():
		add(func(ctx context.Context) (bool, error) { return p.erase(ctx, it, clock.At()) })
	}
	if hasParts {
		add(func(ctx context.Context) (bool, error) { return true, p.deleteParts(ctx, it) })
		add(func(ctx context.Context) (bool, error) { return p.removePartList(ctx, it) })
	}
	return all
}

// isAsSeen is a condition that holds if the record has the same token and state as when it
// was read. It fails if an attempt has taken the record over since, because the record then
// has another token.
const isAsSeen = "#token = :seen_token AND #status = :seen_state"

// expiresNoSooner is a condition that holds if the record has no expiry, or if the new expiry is
// not later than the record's expiry. A purge must never extend the record's life. The purge has
// compared the new expiry with the one that it read, but another purge may have set an earlier
// expiry since.
const expiresNoSooner = "(attribute_not_exists(#expiration) OR #expiration >= :expiration)"

func (it *item) asSeen() attributes {
	return attributes{":seen_token": str(it.Token), ":seen_state": str(it.Status)}
}

// erase removes the answer from a completed record. The record keeps a list of the answer's
// parts until they are deleted.
func (p *purge) erase(ctx context.Context, it *item, now time.Time) (bool, error) {
	return p.removeAnswer(ctx, it, p.erasedItem(it, OperationErased, it.Token, now), isAsSeen)
}

// forget removes the answer and the steps from a record and makes the record expire. It does not
// delete the item. A request that was sent earlier and arrives late must still find the item:
// its condition then fails, and DynamoDB refuses the request.
func (p *purge) forget(ctx context.Context, it *item, now time.Time) (bool, error) {
	own, err := p.o.newToken()
	if err != nil {
		return false, err
	}
	next := p.erasedItem(it, OperationForgotten, own, now)
	next.Token = it.Token
	if it.Status == lambdaidem.Released {
		next.Token, next.Failure = own, nil // takeovers that were sent earlier are refused, because the token has changed
	}
	// Never extend the record's life.
	if next.Expiration = deletionOf(p.forgottenAt(now)); it.Expiration.there {
		next.Expiration.n = min(next.Expiration.n, it.Expiration.n)
	}
	return p.removeAnswer(ctx, it, next, isAsSeen+" AND "+expiresNoSooner, attrSteps, attrToken, attrExpiration)
}

// erasedItem returns an item with the attributes that the purge writes to the record. The item
// has no answer, and its list of operations ends with a new one, for this purge.
func (p *purge) erasedItem(it *item, what OperationKind, token string, now time.Time) *item {
	next := &item{
		ID:      it.ID,
		Failure: lambdaidem.NoAnswer("the request was answered, and the answer was erased since"),
		Operations: withOperation(it.Operations, Operation{
			What: what, By: p.o.name, Reason: p.o.reason, At: now.Truncate(time.Millisecond), Attempt: int(it.Attempt.n), Token: token,
		}),
		Erasing: it.Erasing,
	}
	if it.isErased() { // keep the old failure, because it may say that nobody knows what happened
		next.Failure = it.Failure
	}
	if it.Parts != nil && it.Parts.Count > 0 {
		next.Erasing = it.Parts
	}
	return next
}

// removeAnswer removes the answer from a record by one conditional update. The first item is the
// record as it was read, and the item next has the new values. The update changes the attributes
// that concern the answer, and also the attributes that the last parameter lists. If next has no
// value for an attribute, the update removes the attribute. removeAnswer reports false if the
// record has changed since it was read.
//
// removeAnswer also changes the first item in memory, for the writes that follow: it stores the
// new token, which they compare, and the new list of parts, which they delete.
func (p *purge) removeAnswer(ctx context.Context, it, next *item, condition string, also ...string) (bool, error) {
	attrs := append(also, attrData, attrFailure, attrEncoding, attrParts, attrErasing, attrOperations)
	done, err := p.update(ctx, &attributeUpdate{also: attrs, condition: condition}, next, it.asSeen())
	if it.Erasing = next.Erasing; next.Token != "" {
		it.Token = next.Token
	}
	return done, err
}

// removePartList removes the list of parts from a record after the parts were deleted.
func (p *purge) removePartList(ctx context.Context, it *item) (bool, error) {
	return p.updateAsSeen(ctx, &item{ID: it.ID}, it, attrErasing)
}

// updateAsSeen changes the listed attributes of a record to the values that the item next has. If
// next has no value for an attribute, updateAsSeen removes the attribute. The condition is that
// the record still has the token and the state of the item seen. If the record has another token
// or state, updateAsSeen reports false.
func (p *purge) updateAsSeen(ctx context.Context, next, seen *item, attrs ...string) (bool, error) {
	return p.update(ctx, &attributeUpdate{also: attrs, condition: isAsSeen}, next, seen.asSeen())
}

// update sends a conditional update. It reports true if the update was applied, by the last try
// or by an earlier one whose reply was lost. It also reports true if the record no longer
// exists, because nothing is left to purge.
func (p *purge) update(ctx context.Context, c *attributeUpdate, next *item, values attributes) (bool, error) {
	out, fate, err := p.o.s.updateAttributes(ctx, c, next, values)
	if refused, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		// The error doesn't say how many units the refused write consumed, which depends
		// on the item's size. Count the minimum.
		return len(refused.Item) == 0 || p.o.s.wasApplied(refused.Item, next), p.spend(ctx, 1)
	}
	if err != nil {
		return false, failed(opPurge, fate, err)
	}
	return true, p.spend(ctx, unitsOf(out.ConsumedCapacity))
}

// wasApplied reports whether an earlier try of a refused write was applied, although its reply
// was lost. The parameter next has the values that the write stores, and current is the item in
// the table.
//
// wasApplied looks for the operation that the write adds to the record, which is the last one in
// next. The earlier try was applied if current has this operation. For a write that adds no
// operation, wasApplied returns false.
func (s *Store) wasApplied(current attributes, next *item) bool {
	it, err := s.layout.parse(current)
	n := len(next.Operations)
	return err == nil && n > 0 && slices.ContainsFunc(it.Operations, func(did Operation) bool {
		last := next.Operations[n-1]
		return did.What == last.What && did.Token == last.Token && did.At.Equal(last.At)
	})
}

// deleteParts deletes the parts of an answer that was erased. The deletes need no condition:
// the key of a part contains a checksum of the answer, so a part of another answer has another
// key.
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
