package template

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// CreateQueues creates the queues with their attributes, and each dead-letter queue before the
// queues that use it. It may be called again: an existing queue is left as it is. CreateQueues
// returns an error if an existing queue has other attributes. A dead-letter queue that is not
// in queues must exist already.
//
// CreateQueues finds a dead-letter queue by the name in its ARN. The redrive policy gets the
// queue's ARN at the endpoint, whose account and Region may differ from the template's.
func CreateQueues(ctx context.Context, client *sqs.Client, queues []Queue) error {
	c := queueCreator{client: client, queues: queues, arns: map[string]string{}}
	for _, q := range queues {
		if _, err := c.create(ctx, q, nil); err != nil {
			return err
		}
	}
	return nil
}

type queueCreator struct {
	client *sqs.Client
	queues []Queue
	arns   map[string]string // ARNs at the endpoint of the queues created so far, by name
}

// create creates the queue, after its dead-letter queue, and returns its ARN at the endpoint.
// above has the names of the queues whose dead-letter queues lead to this one, to detect a
// cycle.
func (c *queueCreator) create(ctx context.Context, q Queue, above []string) (string, error) {
	fail := func(format string, args ...any) (string, error) {
		return "", fmt.Errorf("queue %s (%s): "+format, append([]any{q.Name, q.LogicalID}, args...)...)
	}
	if arn := c.arns[q.Name]; arn != "" {
		return arn, nil
	}
	if slices.Contains(above, q.Name) {
		return fail("its dead-letter queues lead back to it, so that none of them can be the first")
	}
	attributes := q.attributes()
	if q.DeadLetter != "" {
		target, err := c.deadLetter(ctx, q, append(above, q.Name))
		if err != nil {
			return "", err
		}
		attributes["RedrivePolicy"] = redrivePolicy(target, q.MaxReceives)
	}
	out, err := c.client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(q.Name), Attributes: attributes})
	if exists := (*types.QueueNameExists)(nil); errors.As(err, &exists) {
		return fail("it exists with other attributes than the template's; delete it or name another queue: %w", err)
	}
	if err != nil {
		return fail("creating it: %w", err)
	}
	arn, err := c.arn(ctx, out.QueueUrl)
	if err != nil {
		return fail("%w", err)
	}
	c.arns[q.Name] = arn
	return arn, nil
}

// deadLetter returns the ARN of q's dead-letter queue at the endpoint. It creates that queue if
// it is one of c.queues.
func (c *queueCreator) deadLetter(ctx context.Context, q Queue, above []string) (string, error) {
	name, ok := QueueName(q.DeadLetter)
	if !ok {
		return "", fmt.Errorf("queue %s (%s): its dead-letter queue %s is no queue's ARN", q.Name, q.LogicalID, q.DeadLetter)
	}
	// AWS refuses a dead-letter queue of the other kind, but other implementations of SQS
	// may accept it.
	if strings.HasSuffix(name, ".fifo") != q.FIFO {
		return "", fmt.Errorf("queue %s (%s): creating it: its dead-letter queue %s is of another kind: both have to be FIFO queues, or neither", q.Name, q.LogicalID, name)
	}
	for _, target := range c.queues {
		if target.Name == name {
			return c.create(ctx, target, above)
		}
	}
	found, err := c.client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(name)})
	if err != nil {
		return "", fmt.Errorf("queue %s (%s): its dead-letter queue %s is not in the template, and is not there: %w", q.Name, q.LogicalID, name, err)
	}
	return c.arn(ctx, found.QueueUrl)
}

func (c *queueCreator) arn(ctx context.Context, url *string) (string, error) {
	out, err := c.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn},
	})
	if err != nil {
		return "", fmt.Errorf("reading its ARN: %w", err)
	}
	return out.Attributes[string(types.QueueAttributeNameQueueArn)], nil
}

// attributes returns the attributes for CreateQueue, without the redrive policy.
func (q Queue) attributes() map[string]string {
	seconds := func(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }
	a := map[string]string{
		"VisibilityTimeout":             seconds(q.Visibility),
		"DelaySeconds":                  seconds(q.Delay),
		"MessageRetentionPeriod":        seconds(q.Retention),
		"ReceiveMessageWaitTimeSeconds": seconds(q.ReceiveWait),
	}
	if q.MaxBytes != 0 {
		a["MaximumMessageSize"] = strconv.Itoa(q.MaxBytes)
	}
	if q.FIFO { // a standard queue does not accept these attributes
		a["FifoQueue"] = "true"
		a["ContentBasedDeduplication"] = strconv.FormatBool(q.ContentDeduplicates)
	}
	return a
}

func redrivePolicy(target string, receives int) string {
	policy, err := json.Marshal(struct {
		Target   string `json:"deadLetterTargetArn"`
		Receives int    `json:"maxReceiveCount"`
	}{target, receives})
	if err != nil { // can't happen: the struct has only a string and a number
		panic(err)
	}
	return string(policy)
}
