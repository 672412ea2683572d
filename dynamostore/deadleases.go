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

// opDeadLeases is the value of StoreError.Op in errors from DeadLeases.
const opDeadLeases = "dead_leases"

// deadMargin is how long ago a lease must have ended, by default, for DeadLeases to return its
// record. The margin excludes attempts that are just finishing. See DeadLeasesOptions.Before.
const deadMargin = 2 * time.Second

// DeadLeasesOptions are the options of [Store.DeadLeases]. The zero value of each field
// selects its default.
type DeadLeasesOptions struct {
	// Before says which leases count as dead: those that ended at this time or earlier. It is
	// rounded down to a millisecond. Default: 2 s before the iteration begins, by this process's
	// clock. These 2 s keep DeadLeases from returning the lease of an attempt that is just
	// finishing. Before needs no margin for differences between clocks, because the end of each
	// lease already includes the guard's MaxSkew.
	Before time.Time

	// PageSize is the maximum number of index entries that one Query returns, from 1 to
	// 1000. Default: 100.
	PageSize int

	// Rate is the maximum number of requests per second, Query and GetItem together. After an
	// outage there may be many dead leases. Rate then limits how much of the table's capacity
	// DeadLeases takes from the functions. Requests are always sent one at a time. Minimum: 0.001.
	// Default: 0, which means no limit.
	Rate float64
}

// leastRate is the minimum of DeadLeasesOptions.Rate, in requests per second.
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

// DeadLeases returns the records whose attempts died: the record is in progress, and its lease has
// ended. DeadLeases changes nothing. Each iteration queries the index Options.LeaseIndex, one shard
// after the other. Within a shard, the records are ordered by the end of their leases.
//
// DeadLeases reads the record of each index entry by a consistent GetItem, because an index lags
// behind its table. It returns the record only if its lease is still dead. These records may be
// missing:
//
//   - a record whose lease has just ended; a later iteration returns it
//   - a record whose lease was acquired by a function without Options.LeaseIndex, or by a version
//     of this package that does not support the index
//
// Errors are *[lambdaidem.StoreError]:
//
//   - If the Reason is [lambdaidem.ReasonForeign], the item could not be read as a record. The
//     Record has only its ID, and the iteration continues.
//   - Any other error comes with the zero Record and ends the iteration. The Reason is
//     [lambdaidem.ReasonInvalid] if Options.LeaseIndex is not set, or if the first index entry
//     shows that Options.IDAttribute is not the table's partition key.
//
// For each shard, an iteration costs half a read unit for each 4 KB of index entries (about 30
// entries), and at least half a unit. Each record costs one more read unit for each 4 KB, usually
// one.
//
// Under policy Rerun, the next request with the same key takes over the dead lease. Under policy
// Hold, an operator must decide. Package watch of this module counts dead leases on a schedule.
//
// DeadLeases needs dynamodb:Query on the index and dynamodb:GetItem on the table. It panics on an
// invalid option.
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
		l := deadLeaseSearch{store: s, opts: o, now: wall(), yield: yield}
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

// deadLeaseSearch is the state of one iteration of DeadLeases.
type deadLeaseSearch struct {
	store *Store
	opts  DeadLeasesOptions
	now   time.Time // when the iteration began, by this process's clock
	yield func(lambdaidem.Record, error) bool
	pace  pace // limits the requests to DeadLeasesOptions.Rate
}

// shard yields the dead leases of one shard of the index. It returns false if the iteration must
// end, because the caller stopped it or a request failed.
func (l *deadLeaseSearch) shard(ctx context.Context, shard string) bool {
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

func (l *deadLeaseSearch) page(ctx context.Context, query *dynamodb.QueryInput) (*dynamodb.QueryOutput, error) {
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

// entry reads the record of one index entry, and yields the record if its lease is dead. It returns
// false if the iteration must end, because the caller stopped it or an error ended it.
func (l *deadLeaseSearch) entry(ctx context.Context, entry attributes) bool {
	var id text
	if key := entry[l.store.layout.id()]; key == nil || takeValue(&id, key) != "" {
		l.yield(lambdaidem.Record{}, &lambdaidem.StoreError{Op: opDeadLeases, Reason: lambdaidem.ReasonInvalid, NotApplied: true,
			Err: fmt.Errorf("an entry of the index has no %q, which must be the table's partition key: set Options.IDAttribute as in the functions that write the records", l.store.layout.id())})
		return false
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
		// Skip this entry, because the record has no dead lease: the index lags behind the table,
		// or a store without Options.LeaseIndex ended the attempt and left the entry.
		return true
	}
	return l.yield(rec, nil)
}

// leaseQuery returns a Query for the leases that end at or before latestEnd, in epoch milliseconds.
// It finds the leases of one shard of the index, ordered by their ends. limit is the maximum number
// of entries on a page.
func (s *Store) leaseQuery(shard string, latestEnd int64, limit int) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName:              aws.String(s.table),
		IndexName:              aws.String(s.opts.LeaseIndex),
		KeyConditionExpression: aws.String("#lease_shard = :shard AND #lease_end <= :before"),
		ExpressionAttributeNames: map[string]string{
			"#lease_shard": s.layout.nameOf(attrLeaseShard),
			"#lease_end":   s.layout.nameOf(attrLeaseEnd),
		},
		ExpressionAttributeValues: map[string]types.AttributeValue{":shard": str(shard), ":before": number(latestEnd)},
		ScanIndexForward:          aws.Bool(true),
		Limit:                     aws.Int32(int32(limit)), //nolint:gosec // 1 to 1000
	}
}

// pace limits the rate of requests.
type pace struct {
	every  time.Duration // the minimum time between two requests; 0 means no limit
	nextAt time.Time     // the earliest time of the next request
}

// wait blocks until the next request may be sent. It returns an error if ctx ends first.
func (p *pace) wait(ctx context.Context) error {
	if p.every > 0 {
		if d := time.Until(p.nextAt); d > 0 {
			timer := time.NewTimer(d)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
		}
		p.nextAt = time.Now().Add(p.every)
	}
	return ctx.Err()
}
