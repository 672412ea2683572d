package commands

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// checkVisibility returns a finding if the queue's visibility timeout is too short, and nil
// otherwise. visible is the visibility timeout; timeout is that of the function.
//
// A message must stay invisible until the lease of its attempt has ended, which is MaxSkew
// after the function's deadline. It is also invisible while Lambda waits for a batch to
// fill. AWS advises six times the timeout plus the batching window, which leaves time to
// retry batches that are throttled (AWS Lambda, "Using Lambda with Amazon SQS").
func (o *checkCommand) checkVisibility(q feed, visible, timeout time.Duration) *finding {
	name := q.url[strings.LastIndex(q.url, "/")+1:]
	advised := 6*timeout + q.window
	waits := ""
	if q.window > 0 {
		waits = fmt.Sprintf(" after a batching window of %v", q.window)
	}
	switch least := q.window + timeout + o.maxSkew; {
	case visible < least:
		return &finding{Code: visibilityTooShort, Detail: fmt.Sprintf(
			"queue %s has a visibility timeout of %v, and function %s may run for %v%s: a message comes back while its attempt's lease is live, and burns a receive; make it at least %v, or %v as AWS advises",
			name, visible, o.function, timeout, waits, least, advised)}
	case visible < advised:
		return &finding{Code: visibilityBelowAdvice, Warning: true, Detail: fmt.Sprintf(
			"queue %s has a visibility timeout of %v; AWS advises six times the timeout of function %s and the batching window, %v", name, visible, o.function, advised)}
	}
	return nil
}

// visibilityOf reads a queue's visibility timeout from SQS.
func visibilityOf(ctx context.Context, queues *sqs.Client, url string) (time.Duration, error) {
	out, err := queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: aws.String(url), AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameVisibilityTimeout},
	})
	if err != nil {
		return 0, err
	}
	seconds, err := strconv.Atoi(out.Attributes[string(sqstypes.QueueAttributeNameVisibilityTimeout)])
	return time.Duration(seconds) * time.Second, err
}
