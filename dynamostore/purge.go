package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
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

	// Forget deletes records instead of erasing their answers: a retry runs again,
	// and has its effects a second time. Default false.
	Forget bool

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
	Foreign    int           // items that are no records: left alone (D4)
	Units      float64       // of capacity, consumed
	Elapsed    time.Duration //
	After      string        // resumes it here; "": it is done
}

// StoreError.Op of a purge.
const opPurge = "purge"

// Purge takes away the answers of records and their parts (O2), walking over the
// whole table. The records stay until their TTL, completed: a retry never runs a
// second time, it gets [lambdaidem.ErrAnswerUnavailable]. A guard with a cache
// (lambdaidem.Options.Cache) may replay from it for the cache's age.
//
// Released records have no answer, and are left; PurgeOptions.Forget deletes them
// too. What is in progress is never touched: each write is conditional on the token
// and the state that were seen. A record is written before its parts are deleted,
// so nobody meets half of an answer for good, and it says meanwhile which parts
// there are: a purge that dies is made good by the next one that walks over that
// record.
//
// It yields its progress after each page, when all before Progress.After is done;
// the last one has none. An error ends it: a StoreError, or one of Pace. A page may
// be done in part then; resume from the last progress.
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

// purge is one purge that is under way.
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
	found, err := p.o.s.scan(ctx, p.progress.After, lambdaidem.Absent, p.opts.PageSize)
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
			if p.chosen(it) {
				group.Go(func() error { return p.record(gctx, it, found.clock.At()) })
			}
		}
	}
	err = group.Wait()
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

// chosen counts a record that Match chose, and tells whether there is anything to do.
func (p *purge) chosen(it *item) bool {
	do := false
	p.count(func(sum *PurgeProgress) {
		switch {
		case it.Status == lambdaidem.InProgress:
			sum.InProgress++
		case it.Status == lambdaidem.Released && !p.opts.Forget:
		case !p.opts.Forget && it.isErased() && it.Erasing == nil:
			sum.Matched++
			sum.Before++
		default:
			sum.Matched++
			do = !p.opts.DryRun
		}
	})
	return do
}

// isErased tells whether a completed record has no answer to take away.
func (it *item) isErased() bool {
	return it.Status == lambdaidem.Completed && it.Failure != nil && it.Failure.Code == lambdaidem.ErrAnswerUnavailable
}

// record purges one record.
func (p *purge) record(ctx context.Context, it *item, now time.Time) error {
	has := it.Erasing != nil || it.Parts != nil && it.Parts.Count > 0 // parts
	steps := []func() (bool, error){}
	if (!p.opts.Forget || has) && !it.isErased() {
		steps = append(steps, func() (bool, error) { return p.erase(ctx, it, now) })
	}
	if has {
		steps = append(steps, func() (bool, error) { return true, p.deleteParts(ctx, it) })
		if !p.opts.Forget {
			steps = append(steps, func() (bool, error) { return p.partsGone(ctx, it) })
		}
	}
	if p.opts.Forget {
		steps = append(steps, func() (bool, error) { return p.forget(ctx, it) })
	}
	for _, step := range steps {
		if done, err := step(); err != nil || !done {
			if err == nil {
				p.count(func(sum *PurgeProgress) { sum.Changed++ })
			}
			return err
		}
	}
	p.count(func(sum *PurgeProgress) { sum.Purged++ })
	return nil
}

// isAsSeen: the record has the same token and state as when it was read. What is in
// progress is in neither of the states that are purged, and what runs again has
// another token.
const isAsSeen = "#token = :seen_token AND #status = :seen_state"

func (it *item) asSeen() attributes {
	return attributes{":seen_token": str(it.Token), ":seen_state": str(it.Status)}
}

// erase takes the answer away. The record names its parts until they are deleted.
func (p *purge) erase(ctx context.Context, it *item, now time.Time) (bool, error) {
	next := &item{
		ID:      it.ID,
		Failure: lambdaidem.NoAnswer("the operation was carried out, and its answer was erased since"),
		Operations: withOperation(it.Operations, Operation{
			What: OperationErased, By: p.o.name, Reason: p.o.reason, At: now.Truncate(time.Millisecond), Attempt: int(it.Attempt.n), Token: it.Token,
		}),
	}
	if it.Parts != nil && it.Parts.Count > 0 {
		next.Erasing = it.Parts
	}
	it.Erasing = next.Erasing
	return p.update(ctx, next, it, []string{attrData, attrFailure, attrEncoding, attrParts, attrErasing, attrOperations})
}

// partsGone takes the names of the parts away.
func (p *purge) partsGone(ctx context.Context, it *item) (bool, error) {
	return p.update(ctx, &item{ID: it.ID}, it, []string{attrErasing})
}

// update writes attributes of a record that is as it was seen. It tells whether it is.
func (p *purge) update(ctx context.Context, next, seen *item, attrs []string) (bool, error) {
	ctx, v := witnessed(ctx, opPurge)
	out, err := p.o.s.change(ctx, &change{also: attrs, condition: isAsSeen}, next, seen.asSeen())
	if err != nil {
		return p.refused(ctx, v, err)
	}
	return true, p.spend(ctx, unitsOf(out.ConsumedCapacity))
}

// forget deletes the record.
func (p *purge) forget(ctx context.Context, it *item) (bool, error) {
	ctx, v := witnessed(ctx, opPurge)
	out, err := p.o.s.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: aws.String(p.o.s.table), Key: p.o.s.key(it.ID),
		ConditionExpression: aws.String(isAsSeen), ExpressionAttributeNames: p.o.s.layout.names(0, isAsSeen),
		ExpressionAttributeValues:           it.asSeen(),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		ReturnConsumedCapacity:              types.ReturnConsumedCapacityTotal,
	})
	if refused, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok && len(refused.Item) == 0 {
		return true, p.spend(ctx, 1) // an earlier attempt on the wire had landed, or TTL came first
	}
	if err != nil {
		return p.refused(ctx, v, err)
	}
	return true, p.spend(ctx, unitsOf(out.ConsumedCapacity))
}

// refused tells whether a write was refused since the record changed: no error.
func (p *purge) refused(ctx context.Context, v *verdict, err error) (bool, error) {
	if _, changed := errors.AsType[*types.ConditionalCheckFailedException](err); changed {
		return false, p.spend(ctx, 1) // the answer doesn't say; it is by the record's size
	}
	return false, v.storeError(err)
}

// deleteParts deletes the parts of an answer. Their keys are bound to it, so they
// are nobody else's.
func (p *purge) deleteParts(ctx context.Context, it *item) error {
	of := it.Erasing
	for n := range of.Count {
		ctx, v := witnessed(ctx, opPurge)
		out, err := p.o.s.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
			TableName: aws.String(p.o.s.table), Key: p.o.s.key(partID(it.ID, of.Checksum, n+1)),
			ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		})
		if err != nil {
			return v.storeError(fmt.Errorf("part %d of %d of the answer: %w", n+1, of.Count, err))
		}
		p.count(func(sum *PurgeProgress) { sum.Parts++ })
		if err := p.spend(ctx, unitsOf(out.ConsumedCapacity)); err != nil {
			return err
		}
	}
	return nil
}
