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

// maxRecords is the most that one GetRecords returns.
const maxRecords = 1000

// read delivers a shard's records and returns when there will be no more and all are
// settled, or when polling ends. With a ParallelizationFactor they are divided by the
// keys of their items, so that an item's changes stay in order.
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

// readPages hands on what GetRecords returns, until the shard ends.
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

// harmless is an error that nobody needs to hear of: DynamoDB Local may call the first
// record of a new table trimmed. Nothing was read of the shard that something could be
// missing after. It is heard of if it goes on.
func harmless(err error, last *string, outage pauses) bool {
	trimmed := (*types.TrimmedDataAccessException)(nil)
	return errors.As(err, &trimmed) && last == nil && outage.next < time.Second
}

// again is the iterator after an error, and whether there is one. An iterator expires
// after 15 minutes, which a batch that is retried can take, and records are trimmed
// after 24 hours ("GetShardIterator").
func (s *streamPoller) again(polling context.Context, sh *shard, iterator, last *string, err error) (*string, bool) {
	var fresh *string
	var failed error
	expired, trimmed := (*types.ExpiredIteratorException)(nil), (*types.TrimmedDataAccessException)(nil)
	switch {
	case iterator == nil, errors.As(err, &trimmed):
		return nil, false // at the first record that is there
	case !errors.As(err, &expired):
		return iterator, true
	case last != nil:
		fresh, failed = s.iterator(polling, sh.id, types.ShardIteratorTypeAfterSequenceNumber, last)
	case sh.iterator != nil:
		// Nothing has come since LATEST, for as long as anybody looked.
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
