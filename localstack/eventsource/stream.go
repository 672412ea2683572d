package eventsource

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// describeEvery is how often new shards are looked for while none has ended.
const describeEvery = time.Second

// streamPoller delivers what is in a table's stream.
type streamPoller struct {
	mapping
	onFailure  string  // name of the queue that is told of what was given up; empty: none
	failureURL *string // its URL
	arn        *string // of the stream at the endpoint; the template's names no moment
	shards     map[string]*shard
}

// shard is a shard that has been seen, in one of three states: not begun, begun, ended.
type shard struct {
	id       string
	parent   string
	iterator *string // where to begin; nil: at its first record
	begun    bool
	ended    bool
}

func (s *streamPoller) prepare(ctx context.Context) error {
	if s.onFailure != "" {
		found, err := s.options.SQS.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(s.onFailure)})
		if err != nil {
			return fmt.Errorf("finding the queue %s, its OnFailure: %w", s.onFailure, err)
		}
		s.failureURL = found.QueueUrl
	}
	if err := s.find(ctx); err != nil {
		return err
	}
	s.shards = map[string]*shard{}
	if s.source.FromStart {
		return nil // shards begin at their first records, whenever they are seen
	}
	// What is written from now on is in the shards that are open now, or in their
	// children.
	listed, err := s.describe(ctx)
	if err != nil {
		return err
	}
	for _, found := range listed {
		if found.SequenceNumberRange != nil && found.SequenceNumberRange.EndingSequenceNumber != nil {
			s.see(found).ended = true
			continue
		}
		iterator, err := s.iterator(ctx, aws.ToString(found.ShardId), types.ShardIteratorTypeLatest, nil)
		if err != nil {
			return err
		}
		s.see(found).iterator = iterator
	}
	return nil
}

// find looks up the table's stream. Streams that ended with earlier tables of the
// name are listed for a day; the labels are times.
func (s *streamPoller) find(ctx context.Context) error {
	input := &dynamodbstreams.ListStreamsInput{TableName: aws.String(s.source.Table)}
	latest := ""
	for {
		out, err := s.options.Streams.ListStreams(ctx, input)
		if err != nil {
			return fmt.Errorf("finding the stream of table %s: %w", s.source.Table, err)
		}
		for _, found := range out.Streams {
			if label := aws.ToString(found.StreamLabel); label > latest {
				latest, s.arn = label, found.StreamArn
			}
		}
		if input.ExclusiveStartStreamArn = out.LastEvaluatedStreamArn; input.ExclusiveStartStreamArn == nil {
			break
		}
	}
	if s.arn == nil {
		return fmt.Errorf("table %s has no stream; is it created, with a StreamSpecification?", s.source.Table)
	}
	return nil
}

// describe lists all shards.
func (s *streamPoller) describe(ctx context.Context) ([]types.Shard, error) {
	input := &dynamodbstreams.DescribeStreamInput{StreamArn: s.arn}
	var shards []types.Shard
	for {
		out, err := s.options.Streams.DescribeStream(ctx, input)
		if err != nil {
			return nil, fmt.Errorf("listing the shards of %s: %w", aws.ToString(s.arn), err)
		}
		shards = append(shards, out.StreamDescription.Shards...)
		if input.ExclusiveStartShardId = out.StreamDescription.LastEvaluatedShardId; input.ExclusiveStartShardId == nil {
			return shards, nil
		}
	}
}

func (s *streamPoller) iterator(ctx context.Context, shard string, kind types.ShardIteratorType, sequence *string) (*string, error) {
	out, err := s.options.Streams.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
		StreamArn: s.arn, ShardId: aws.String(shard), ShardIteratorType: kind, SequenceNumber: sequence,
	})
	if err != nil {
		return nil, fmt.Errorf("getting the %s iterator of %s: %w", kind, shard, err)
	}
	return out.ShardIterator, nil
}

// see notes a shard, unless it is known.
func (s *streamPoller) see(found types.Shard) *shard {
	id := aws.ToString(found.ShardId)
	if s.shards[id] == nil {
		s.shards[id] = &shard{id: id, parent: aws.ToString(found.ParentShardId)}
	}
	return s.shards[id]
}

// run reads shards in the order of their lineage: a child's records of an item come
// after its parent's. A parent that is not listed any more has no records.
func (s *streamPoller) run(polling context.Context) {
	var readers sync.WaitGroup
	defer readers.Wait()
	ended := make(chan *shard)
	outage := outagePauses()
	for {
		listed, err := s.describe(polling)
		if err != nil {
			if polling.Err() == nil {
				s.printf("%v", err)
			}
			if !outage.wait(polling) {
				return
			}
			continue // a shard that has ended meanwhile waits to say so
		}
		outage = outagePauses()
		for _, found := range listed {
			s.see(found)
		}
		for _, next := range s.shards {
			if parent := s.shards[next.parent]; next.begun || next.ended || parent != nil && !parent.ended {
				continue
			}
			next.begun = true
			readers.Go(func() {
				s.read(polling, next)
				select {
				case ended <- next:
				case <-polling.Done():
				}
			})
		}
		timer := time.NewTimer(describeEvery)
		select {
		case one := <-ended:
			one.ended = true
		case <-timer.C:
		case <-polling.Done():
		}
		timer.Stop()
		if polling.Err() != nil {
			return
		}
	}
}
