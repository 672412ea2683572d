package main

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

// function is a guarded Lambda function that handles many invocations at a time.
type function struct {
	task    task
	mode    mode
	wire    *wire
	handler func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)
	ran     runs
	failed  storeErrors
}

func newFunction(ctx context.Context, t task) (*function, error) {
	f := &function{task: t, wire: newWire(t.SDKClient)}
	var err error
	if f.mode, err = modeOf(t.Mode); err != nil {
		return nil, err
	}
	client := dynamodb.NewFromConfig(aws.Config{
		Region: "eu-west-1", BaseEndpoint: aws.String(t.Endpoint), HTTPClient: f.wire,
		Credentials: credentials.NewStaticCredentialsProvider(ddblocal.DummyCredential, ddblocal.DummyCredential, ""),
	})
	store := dynamostore.New(client, t.Table, func(o *dynamostore.Options) { o.AttemptTimeout = t.AttemptTimeout })
	if warmed := store.Warm(ctx); warmed.Err != nil {
		return nil, warmed.Err
	}
	guard := lambdaidem.New(store, f.mode.set, func(o *lambdaidem.Options) { o.Namespace, o.Observer = "storm", &f.failed })
	f.handler = guard.APIGatewayV2(func(ctx context.Context, _ events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		return f.ran.run(ctx, t.HandlerTakes), nil
	})
	return f, nil
}

// invocationTimeout is the function's timeout, which sets the deadline of each invocation.
const invocationTimeout = 5 * time.Minute

// storm sends the requests of a wave at the same time. When all of them have a response, it returns
// its measurements.
func (f *function) storm(ctx context.Context, w wave) measured {
	f.wire.begin(w.At)
	m := measured{DuplicateCalls: map[string]int{}}
	var mu sync.Mutex
	times := map[answer]int{}
	var done sync.WaitGroup
	start := make(chan struct{})
	for i := range w.Requests {
		r := &request{}
		first := w.IncludeFirst && i == 0
		event := newEvent(f.task.Key, f.mode.retries && !first)
		done.Go(func() {
			<-start
			ctx, cancel := context.WithTimeout(context.WithValue(ctx, requestKey{}, r), invocationTimeout)
			defer cancel()
			resp, err := f.handler(ctx, event)
			took := time.Since(w.At)
			mu.Lock()
			defer mu.Unlock()
			times[answerOf(resp, err)]++
			m.Last = max(m.Last, took)
			if r.ran {
				return
			}
			m.MostCalls = max(m.MostCalls, len(r.calls))
			m.MostSoon = max(m.MostSoon, min(len(r.calls), r.callsWithin(f.task.HandlerTakes)+1))
			for _, c := range r.calls {
				m.DuplicateCalls[c.Operation]++
			}
		})
	}
	time.Sleep(time.Until(w.At))
	close(start)
	done.Wait()
	for a, n := range times {
		m.Answers = append(m.Answers, answers{a, n})
	}
	m.Runs, m.RecordID = f.ran.take()
	m.Calls, m.MostOpen = f.wire.end()
	m.PeakMemory = peakMemory()
	m.StoreErrors = f.failed.take()
	return m
}
