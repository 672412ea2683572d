package eventsource

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// failureJSON is the message that Lambda sends to an OnFailure destination ("Retain discarded
// records for a DynamoDB event source in Lambda"). It identifies the records but does not contain
// them; they can be read from the stream for 24 hours.
type failureJSON struct {
	RequestContext  requestJSON   `json:"requestContext"`
	ResponseContext *responseJSON `json:"responseContext,omitempty"` // nil if the function was never invoked with the records
	Version         string        `json:"version"`
	Timestamp       string        `json:"timestamp"`
	Batch           batchJSON     `json:"DDBStreamBatchInfo"`
}

type requestJSON struct {
	RequestID   string `json:"requestId"`
	FunctionARN string `json:"functionArn"`
	Condition   string `json:"condition"` // RetryAttemptsExhausted or RecordAgeExceeded
	Invokes     int    `json:"approximateInvokeCount"`
}

type responseJSON struct {
	StatusCode int     `json:"statusCode"`
	Version    string  `json:"executedVersion"`
	Error      *string `json:"functionError"` // null if the function returned no error
}

type batchJSON struct {
	ShardID   string `json:"shardId"`
	First     string `json:"startSequenceNumber"`
	Last      string `json:"endSequenceNumber"`
	FirstTime string `json:"approximateArrivalOfFirstRecord"`
	LastTime  string `json:"approximateArrivalOfLastRecord"`
	Size      int    `json:"batchSize"`
	StreamARN string `json:"streamArn"`
}

// giveUp logs that changes will not be delivered any more, and reports them to the mapping's
// OnFailure queue, if it has one. condition is the reason, such as RetryAttemptsExhausted. If the
// report can't be sent, giveUp only logs the error, so that the shard goes on.
func (s *streamPoller) giveUp(p piece, changes []change, condition string) {
	first, last := changes[0], changes[len(changes)-1]
	s.printf("%d records of %s are given up, %s to %s: %s", len(changes), first.shard, first.sequence, last.sequence, condition)
	if s.failureURL == nil {
		return
	}
	failure := failureJSON{
		RequestContext: requestJSON{RequestID: p.last.result.RequestID, FunctionARN: s.functionARN(), Condition: condition, Invokes: p.invokes},
		Version:        "1.0",
		Timestamp:      time.Now().UTC().Format("2006-01-02T15:04:05.000Z"),
		Batch: batchJSON{
			ShardID: first.shard, First: first.sequence, Last: last.sequence,
			FirstTime: first.created.UTC().Format(time.RFC3339), LastTime: last.created.UTC().Format(time.RFC3339),
			Size: len(changes), StreamARN: aws.ToString(s.arn),
		},
	}
	if failure.RequestContext.RequestID == "" {
		failure.RequestContext.RequestID = newUUID()
	}
	if p.invokes > 0 {
		failure.ResponseContext = &responseJSON{StatusCode: 200, Version: "$LATEST"}
		if functionError := p.last.result.FunctionError; functionError != "" {
			failure.ResponseContext.Error = &functionError
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), settleWithin)
	defer cancel()
	_, err := s.options.SQS.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: s.failureURL, MessageBody: aws.String(string(encoded(failure)))})
	if err != nil {
		s.printf("telling %s of it: %v", s.onFailure, err)
	}
}

func newUUID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails, see crypto/rand
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
