package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// opDeadLeases is the operation of [Store.DeadLeases] in errors.
const opDeadLeases = "dead_leases"

// deadMargin is how long ago a lease must have ended by default: what lambdaidem
// allows clocks to differ by (Options.MaxSkew).
const deadMargin = 2 * time.Second

// DeadLeasesOptions are what [Store.DeadLeases] can be told. The zero value of every
// field is its documented default.
type DeadLeasesOptions struct {
	// Before is the latest end of a lease that counts as dead, to the millisecond.
	// Default: 2 s before the iteration begins, by this process's clock. A lease's
	// end has the guard's MaxSkew in it already; the margin is there so that an
	// attempt that just ends is not told of.
	Before time.Time

	// PageSize is how many entries of the index one Query asks for: 1 to 1000.
	// Default 100.
	PageSize int

	// Rate bounds the requests in a second, Query and GetItem together: after a bad
	// hour there may be many, and the table is in use. 0.001 at least. Default: no
	// bound, one request after the other.
	Rate float64
}

const leastRate = 0.001

func (o *DeadLeasesOptions) problem() string {
	switch {
	case o.PageSize < 1 || o.PageSize > 1000:
		return fmt.Sprintf("PageSize is %d; it must be 1 to 1000", o.PageSize)
	case o.Rate != 0 && (o.Rate < leastRate || o.Rate != o.Rate):
		return fmt.Sprintf("Rate is %v; it must be at least %v a second, or 0", o.Rate, leastRate)
	}
	return ""
}

// DeadLeases returns the records whose attempts died: in progress, with a lease that
// is over. It finds them in Options.LeaseIndex, and scans nothing. Each
// iteration is a look of its own, shard by shard, and within a shard from the lease
// that ended first.
//
// An index lags behind its table, so each of its entries is confirmed by a consistent
// GetItem: what is returned stood so in the table when it was read. What died in the
// last moments may be missing, and is there in the next look. So is what was locked
// by a version, or under options, without the index.
//
// Errors are *[lambdaidem.StoreError]. One of [lambdaidem.ReasonForeign] comes with a
// Record that has nothing but the ID of an item that can't be read, and the iteration
// goes on. Any other comes with the zero Record and is the last; without
// Options.LeaseIndex it is the first too, of [lambdaidem.ReasonInvalid].
//
// A look costs half a read unit for each shard and each 4 KB of its entries (about 30
// of them), and a read unit for each entry (for each 4 KB, where steps are stored).
// It takes no lock and changes nothing; under policy Rerun the next request with the
// same key takes a dead lease over by itself, under policy Hold an operator decides.
//
// It needs dynamodb:Query on the index and dynamodb:GetItem on the table. It panics
// on an invalid option, and names it.
func (s *Store) DeadLeases(ctx context.Context, optFns ...func(*DeadLeasesOptions)) iter.Seq2[lambdaidem.Record, error] {
	var o DeadLeasesOptions
	for _, fn := range optFns {
		fn(&o)
	}
	orDefault(&o.PageSize, 100)
	if problem := o.problem(); problem != "" {
		panic("dynamostore: DeadLeases: DeadLeasesOptions." + problem)
	}
	return func(yield func(lambdaidem.Record, error) bool) {
		if s.opts.LeaseIndex == "" {
			yield(lambdaidem.Record{}, &lambdaidem.StoreError{Op: opDeadLeases, Reason: lambdaidem.ReasonInvalid, NotApplied: true, Err: errNoLeaseIndex})
			return
		}
		l := look{store: s, opts: o, now: wall(), yield: yield}
		if l.opts.Before.IsZero() {
			l.opts.Before = l.now.Add(-deadMargin)
		}
		if o.Rate > 0 {
			l.pace.every = time.Duration(float64(time.Second) / o.Rate)
		}
		for n := range s.opts.LeaseShards {
			if !l.shard(ctx, shardName(n)) {
				return
			}
		}
	}
}

var errNoLeaseIndex = errors.New("Options.LeaseIndex is empty: without the index nothing but a scan finds leases that died")

// look is one look at the index.
type look struct {
	store *Store
	opts  DeadLeasesOptions
	now   time.Time // when it began
	yield func(lambdaidem.Record, error) bool
	pace  pace
}

// shard goes through one shard. It reports whether the next is wanted.
func (l *look) shard(ctx context.Context, shard string) bool {
	s := l.store
	query := s.leaseQuery(shard, l.opts.Before.UnixMilli(), l.opts.PageSize)
	for {
		page, err := l.page(ctx, query)
		if err != nil {
			l.yield(lambdaidem.Record{}, err)
			return false
		}
		for _, entry := range page.Items {
			if !l.entry(ctx, entry) {
				return false
			}
		}
		if len(page.LastEvaluatedKey) == 0 {
			return true
		}
		query.ExclusiveStartKey = page.LastEvaluatedKey
	}
}

func (l *look) page(ctx context.Context, query *dynamodb.QueryInput) (*dynamodb.QueryOutput, error) {
	err := l.pace.wait(ctx)
	var page *dynamodb.QueryOutput
	if err == nil {
		_, err = wire.Watch(ctx, func(ctx context.Context) (err error) {
			page, err = l.store.wire.SDK().Query(ctx, query)
			return err
		})
	}
	if err != nil {
		return nil, failed(opDeadLeases, wire.NotApplied, err)
	}
	return page, nil
}

// entry confirms one entry of the index, and hands the record out. It reports
// whether the next is wanted.
func (l *look) entry(ctx context.Context, entry attributes) bool {
	var id text
	if key := entry[l.store.layout.id()]; key == nil || takeValue(&id, key) != "" {
		return true // no key of the table's: can't happen
	}
	if err := l.pace.wait(ctx); err != nil {
		l.yield(lambdaidem.Record{}, failed(opDeadLeases, wire.NotApplied, err))
		return false
	}
	rec, err := l.store.Get(ctx, string(id), l.now)
	switch {
	case err != nil && isForeign(err):
		return l.yield(lambdaidem.Record{ID: string(id)}, err)
	case err != nil:
		l.yield(lambdaidem.Record{}, err)
		return false
	case rec.State != lambdaidem.InProgress || rec.LeaseEnd.UnixMilli() > l.opts.Before.UnixMilli():
		return true // the index lags, or a version without it has ended the attempt
	}
	return l.yield(rec, nil)
}

// leaseQuery asks a shard for the leases that end at or before a time, in epoch
// milliseconds, in their order.
func (s *Store) leaseQuery(shard string, before int64, limit int) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName:              aws.String(s.table),
		IndexName:              aws.String(s.opts.LeaseIndex),
		KeyConditionExpression: aws.String("#lease_shard = :shard AND #lease_end <= :before"),
		ExpressionAttributeNames: map[string]string{
			"#lease_shard": s.layout.nameOf(attrLeaseShard),
			"#lease_end":   s.layout.nameOf(attrLeaseEnd),
		},
		ExpressionAttributeValues: map[string]types.AttributeValue{":shard": str(shard), ":before": number(before)},
		ScanIndexForward:          aws.Bool(true),
		Limit:                     aws.Int32(int32(limit)), //nolint:gosec // 1 to 1000
	}
}

// pace keeps requests apart.
type pace struct {
	every time.Duration // 0: it doesn't
	next  time.Time
}

// wait returns when the next request may go, or with the error of a context that
// ended before.
func (p *pace) wait(ctx context.Context) error {
	if p.every > 0 {
		if d := time.Until(p.next); d > 0 {
			timer := time.NewTimer(d)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
		}
		p.next = time.Now().Add(p.every)
	}
	return ctx.Err()
}
