package eventsource

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// maxRecords is the maximum number of records that one GetRecords call returns.
const maxRecords = 1000

// read delivers the records of a shard. It returns when the shard has ended and all its records
// have succeeded or were given up, or when polling and the running invocations have ended. If the
// source has a ParallelizationFactor, read distributes the records over that many lanes by a hash
// of the item's key, so that changes of one item stay in order.
func (s *streamPoller) read(polling context.Context, sh *shard) {
	lanes := make([]chan []change, max(s.source.Concurrency, 1))
	var deliveries sync.WaitGroup
	for i := range lanes {
		lanes[i] = make(chan []change)
		deliveries.Go(func() { s.deliverAll(polling, lanes[i]) })
	}
	s.readPages(polling, sh, func(page []change) {
		parts := make([][]change, len(lanes))
		for _, c := range page {
			i := c.lane % uint64(len(lanes))
			parts[i] = append(parts[i], c)
		}
		for i, part := range parts {
			if len(part) == 0 {
				continue
			}
			select {
			case lanes[i] <- part:
			case <-polling.Done():
			}
		}
	})
	for _, lane := range lanes {
		close(lane)
	}
	deliveries.Wait()
}

// readPages calls hand with each non-empty page of records that GetRecords returns, until the
// shard or polling ends.
func (s *streamPoller) readPages(polling context.Context, sh *shard, hand func([]change)) {
	iterator := sh.iterator
	var last *string // the sequence number of the last record
	idle, outage := idlePauses(), outagePauses()
	limit := min(maxRecords, s.source.BatchSize*max(s.source.Concurrency, 1))
	for started := iterator != nil; iterator != nil || !started; {
		var err error
		if iterator == nil {
			iterator, err = s.iterator(polling, sh.id, types.ShardIteratorTypeTrimHorizon, nil)
		}
		var out *dynamodbstreams.GetRecordsOutput
		if err == nil {
			started = true
			out, err = s.options.Streams.GetRecords(polling, &dynamodbstreams.GetRecordsInput{
				ShardIterator: iterator, Limit: aws.Int32(int32(limit)), //nolint:gosec // up to 1,000
			})
		}
		if err != nil {
			if polling.Err() == nil && !harmless(err, last, outage) {
				s.printf("reading %s: %v", sh.id, err)
			}
			iterator, started = s.again(polling, sh, iterator, last, err)
			if !outage.wait(polling) {
				return
			}
			continue
		}
		outage = outagePauses()
		iterator = out.NextShardIterator
		if len(out.Records) == 0 {
			if iterator != nil && !idle.wait(polling) {
				return
			}
			continue
		}
		idle = idlePauses()
		page := s.changes(sh, out.Records)
		last = aws.String(page[len(page)-1].sequence)
		hand(page)
		if polling.Err() != nil {
			return
		}
	}
}

// harmless reports whether an error of a read need not be logged. DynamoDB Local may say that the
// first record of a new table was trimmed. As long as nothing was read from the shard, no record
// is missing in between. If the error persists until the pauses reach a second, harmless returns
// false.
func harmless(err error, last *string, outage pauses) bool {
	trimmed := (*types.TrimmedDataAccessException)(nil)
	return errors.As(err, &trimmed) && last == nil && outage.next < time.Second
}

// again returns the iterator with which to continue after err. It returns nil and false if
// reading must start at the first record that the shard still has. An iterator expires after 15
// minutes, and retries of a batch can take longer. Records are trimmed after 24 hours
// ("GetShardIterator").
func (s *streamPoller) again(polling context.Context, sh *shard, iterator, last *string, err error) (*string, bool) {
	var fresh *string
	var failed error
	expired, trimmed := (*types.ExpiredIteratorException)(nil), (*types.TrimmedDataAccessException)(nil)
	switch {
	case iterator == nil, errors.As(err, &trimmed):
		return nil, false // continue at the first record that the shard still has
	case !errors.As(err, &expired):
		return iterator, true
	case last != nil:
		fresh, failed = s.iterator(polling, sh.id, types.ShardIteratorTypeAfterSequenceNumber, last)
	case sh.iterator != nil:
		// No record has been read since the first iterator, so there is no sequence number to
		// continue after.
		s.printf("nobody has looked at %s for so long that its iterator is gone; it goes on at LATEST", sh.id)
		fresh, failed = s.iterator(polling, sh.id, types.ShardIteratorTypeLatest, nil)
	default:
		return nil, false
	}
	if errors.As(failed, &trimmed) {
		s.printf("records of %s after %s were trimmed before they were read: %v", sh.id, aws.ToString(last), failed)
		return nil, false
	}
	return cmp.Or(fresh, iterator), true
}

var seed = maphash.MakeSeed()

func (s *streamPoller) changes(sh *shard, found []types.Record) []change {
	now := time.Now()
	page := make([]change, 0, len(found))
	for _, r := range found {
		c := change{shard: sh.id, arrived: now, created: now, record: changeRecord(r, s.source.ARN, s.region())}
		if d := r.Dynamodb; d != nil {
			c.sequence = aws.ToString(d.SequenceNumber)
			c.lane = maphash.Bytes(seed, encoded(itemJSON(d.Keys))) // maps are encoded in the order of their keys
			if d.ApproximateCreationDateTime != nil {
				c.created = *d.ApproximateCreationDateTime
			}
		}
		page = append(page, c)
	}
	return page
}
