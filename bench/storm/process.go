package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/bench/internal/command"
	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

// processArgument is the only argument of a process that startProcess has started.
const processArgument = "process"

// isProcess reports whether startProcess has started this program.
func isProcess() bool { return len(os.Args) == 2 && os.Args[1] == processArgument }

// runProcess runs a process to its end, and returns the status with which it must exit.
func runProcess() int {
	return command.Run("storm", func(ctx context.Context) error { return serve(ctx, os.Stdin, os.Stdout) })
}

// task is the first JSON text that a process reads from its standard input.
type task struct {
	Mode            string // the name of a mode
	Endpoint, Table string // where the records are
	Key             string // the idempotency key of all requests
	settings
}

// wave is each further JSON text on the standard input: requests to send at the same time.
type wave struct {
	Requests     int
	IncludeFirst bool      // one request is the client's first, which never carries the header of a retry
	At           time.Time // when to send the requests
}

// measured is what a process writes to its standard output after each wave, as JSON.
type measured struct {
	Answers        []answers
	Runs           int            // how often the handler ran in this wave
	RecordID       string         // the id of the record; empty if the handler has not run
	Calls          []call         // every request to DynamoDB
	MostCalls      int            // the maximum number of requests to DynamoDB that one duplicate sent
	MostSoon       int            // like MostCalls, but all requests that a duplicate sent later than HandlerTakes after its first one count as one
	DuplicateCalls map[string]int // the number of requests to DynamoDB that all duplicates sent, by operation
	Last           time.Duration  // from wave.At to the last response
	MostOpen       int            // the maximum number of open connections since the process began
	PeakMemory     int            // bytes, since the process began; 0 if unknown
	StoreErrors    map[string]int // failed calls of the store, by reason
}

// serve reads a task from in and initializes the function, as Lambda does before the first
// invocation. Then it writes a line to out, and carries out waves until in ends.
func serve(ctx context.Context, in io.Reader, out io.Writer) error {
	input, output := json.NewDecoder(in), json.NewEncoder(out)
	var t task
	if err := input.Decode(&t); err != nil {
		return fmt.Errorf("read the task: %w", err)
	}
	f, err := newFunction(ctx, t)
	if err != nil {
		return err
	}
	if err := output.Encode("ready"); err != nil {
		return err
	}
	for {
		var w wave
		if err := input.Decode(&w); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read a wave: %w", err)
		}
		if err := output.Encode(f.storm(ctx, w)); err != nil {
			return err
		}
	}
}

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

// storm sends the requests of a wave at the same time, and returns what it measured when all of
// them have a response.
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
