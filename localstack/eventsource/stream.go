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

// describeEvery is the time between two searches for new shards, unless a shard ends earlier.
const describeEvery = time.Second

// streamPoller delivers the records of one table's stream.
type streamPoller struct {
	mapping
	onFailure  string  // name of the queue that receives reports of records that were given up; empty if there is none
	failureURL *string // URL of the queue onFailure
	arn        *string // ARN of the stream at the endpoint; the ARN in the template has no creation time
	shards     map[string]*shard
}

// shard is the state of a shard that was listed at least once: its reading has not begun, has
// begun, or has ended. A shard that was closed before a start at LATEST counts as ended.
type shard struct {
	id       string
	parent   string
	iterator *string // where reading begins; nil for the first record of the shard
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
		return nil // every shard is read from its first record, whenever it is listed
	}
	// Records that are written from now on are in the shards that are open now, or in their
	// descendants.
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

// find sets s.arn to the ARN of the table's current stream. ListStreams also returns streams of
// earlier tables of the same name, until a day after they ended. find takes the stream with the
// latest label, because labels are times.
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

// describe returns all shards of the stream.
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

// see returns the state of a shard, which it adds to s.shards if the shard is new.
func (s *streamPoller) see(found types.Shard) *shard {
	id := aws.ToString(found.ShardId)
	if s.shards[id] == nil {
		s.shards[id] = &shard{id: id, parent: aws.ToString(found.ParentShardId)}
	}
	return s.shards[id]
}

// run reads a shard after its parent has ended, because changes of an item in a child shard come
// after those in the parent. If a parent is not listed any more, all its records were trimmed, so
// run doesn't wait for it.
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
			continue // a reader whose shard has ended blocks on the channel ended until the next select
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
