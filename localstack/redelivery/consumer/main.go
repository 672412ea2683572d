// Command consumer is a Lambda function that handles messages of any event source with a guard.
// For each [redelivery.Message], it does what the message tells it to do, and records its runs
// and effects in a [redelivery.Ledger].
package main

import (
	"context"
	"encoding/base64"
	"log/slog"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/localstack/redelivery"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		fatal("load the AWS configuration", err)
	}
	client := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.RetryMaxAttempts = 1 // a retry could record the same run twice
		// DynamoDB Local sends no checksum with an error reply. The SDK would take the missing
		// checksum for 0 and log a warning for each error.
		o.DisableValidateResponseChecksum = true
	})
	guard := lambdaidem.New(dynamostore.New(client, os.Getenv(redelivery.RecordsVariable)), func(o *lambdaidem.Options) {
		if skew := os.Getenv(redelivery.SkewVariable); skew != "" {
			if o.MaxSkew, err = time.ParseDuration(skew); err != nil {
				fatal(redelivery.SkewVariable, err)
			}
		}
	})
	together := 0
	if n := os.Getenv(redelivery.ConcurrencyVariable); n != "" {
		if together, err = strconv.Atoi(n); err != nil {
			fatal(redelivery.ConcurrencyVariable, err)
		}
	}
	c := &consumer{ledger: redelivery.Ledger{Client: client, Table: os.Getenv(redelivery.LedgerVariable)}}
	switch source := redelivery.Source(os.Getenv(redelivery.SourceVariable)); source {
	case redelivery.SQS:
		lambda.Start(watched(c, guard.SQS(handler(c, func(m events.SQSMessage) string { return m.Body }), some[events.SQSMessage](together))))
	case redelivery.SNS:
		lambda.Start(watched(c, silent(guard.SNS(handler(c, func(m events.SNSEventRecord) string { return m.SNS.Message })))))
	case redelivery.EventBridge:
		lambda.Start(watched(c, silent(guard.EventBridge(handler(c, func(e events.EventBridgeEvent) string { return string(e.Detail) })))))
	case redelivery.Kinesis:
		lambda.Start(watched(c, guard.Kinesis(handler(c, func(r events.KinesisEventRecord) string { return string(r.Kinesis.Data) }), some[events.KinesisEventRecord](together))))
	case redelivery.DynamoDBStream:
		lambda.Start(watched(c, guard.DynamoDBStream(handler(c, func(r events.DynamoDBEventRecord) string { return r.Change.NewImage["body"].String() }), some[events.DynamoDBEventRecord](together))))
	case redelivery.Kafka:
		lambda.Start(watched(c, guard.Kafka(handler(c, valueOf), some[events.KafkaRecord](together))))
	default:
		slog.Error("the consumer can't start", redelivery.SourceVariable, source)
		os.Exit(1)
	}
}

// valueOf returns the value of a Kafka record, or "" if the value is not base64.
func valueOf(r events.KafkaRecord) string {
	value, err := base64.StdEncoding.DecodeString(r.Value)
	if err != nil {
		return ""
	}
	return string(value)
}

func fatal(what string, err error) {
	slog.Error("the consumer can't start: "+what, "error", err)
	os.Exit(1)
}

type consumer struct {
	ledger redelivery.Ledger
	doomed atomic.Bool // a message of this invocation had the deed Vanish
}

// watched returns a handler that records the beginning of each invocation, and the time left at
// its end. If a message had the deed Vanish, the handler kills the process before it answers.
func watched[E, R any](c *consumer, h func(context.Context, E) (R, error)) func(context.Context, E) (R, error) {
	return func(ctx context.Context, event E) (R, error) {
		request := requestOf(ctx)
		if err := c.ledger.Arrive(ctx, request); err != nil {
			var none R
			return none, err
		}
		answer, err := h(ctx, event)
		if c.doomed.Load() {
			die()
		}
		deadline, _ := ctx.Deadline()
		if lost := c.ledger.Leave(ctx, request, time.Until(deadline)); lost != nil {
			slog.ErrorContext(ctx, "the end of an invocation was not written down", "error", lost)
		}
		return answer, err
	}
}

// handler returns a handler for the messages of a source. body returns the body of such a
// message.
func handler[M any](c *consumer, body func(M) string) func(context.Context, M) error {
	return func(ctx context.Context, m M) error { return c.handle(ctx, body(m)) }
}

// some sets the number of messages of a batch that may run at the same time.
func some[M any](together int) func(*lambdaidem.BatchOptions[M]) {
	return func(o *lambdaidem.BatchOptions[M]) { o.Concurrency = together }
}

// silent converts a handler without an answer into one with an empty answer.
func silent[E any](h func(context.Context, E) error) func(context.Context, E) (struct{}, error) {
	return func(ctx context.Context, event E) (struct{}, error) { return struct{}{}, h(ctx, event) }
}

func requestOf(ctx context.Context) string {
	about, ok := lambdacontext.FromContext(ctx)
	if !ok {
		panic("an invocation without a Lambda context")
	}
	return about.AwsRequestID
}

// die kills the process with SIGKILL, as in a crash. It never returns.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // a process may always signal itself
	select {}
}
