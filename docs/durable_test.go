package docs_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	lambdasdk "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

func TestDurable_ShowsCodeThatCompiles(t *testing.T) { showsCodeThatCompiles(t, "docs/durable.md") }

// This file has the code of docs/durable.md. It runs against a fake Lambda that treats the names of
// executions as AWS documents it.

// invoker has the method of the SDK's Lambda client that start calls.
type invoker interface {
	Invoke(context.Context, *lambdasdk.InvokeInput, ...func(*lambdasdk.Options)) (*lambdasdk.InvokeOutput, error)
}

// fulfilment is the event of a durable function that fulfils an order.
type fulfilment struct {
	OrderID string `json:"order_id"`
}

func start(ctx context.Context, client invoker, order fulfilment) (string, error) {
	payload, err := json.Marshal(order) // no time, no random id: the same bytes in every attempt
	if err != nil {
		return "", err
	}
	in := &lambdasdk.InvokeInput{
		FunctionName:   aws.String("fulfil-order:live"),
		InvocationType: types.InvocationTypeEvent,
		Payload:        payload,
	}
	if name := lambdaidem.DownstreamKey(ctx, "fulfil-order"); name != "" {
		in.DurableExecutionName = aws.String(name)
	}
	out, err := client.Invoke(ctx, in)
	if err != nil {
		return "", lambdaidem.Uncertain(err) // it may have started
	}
	return aws.ToString(out.DurableExecutionArn), nil
}

func newStarter(guard *lambdaidem.Guard, client invoker) lambdaidem.APIGatewayV2Handler {
	return guard.APIGatewayV2(func(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		var order fulfilment
		if err := json.Unmarshal([]byte(e.Body), &order); err != nil {
			return events.APIGatewayV2HTTPResponse{}, lambdaidem.Reject(http.StatusBadRequest, "order_invalid", "The order is no JSON.")
		}
		execution, err := start(ctx, client, order)
		return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusAccepted, Body: execution}, err
	})
}

func newDispatcher(guard *lambdaidem.Guard, client invoker) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
	return guard.SQS(func(ctx context.Context, m events.SQSMessage) error {
		var order fulfilment
		if err := json.Unmarshal([]byte(m.Body), &order); err != nil {
			return err
		}
		_, err := start(ctx, client, order)
		return err
	}, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		o.Operation = "start-fulfilment" // the same for the queue and for its dead-letter queue
	})
}

// reserve does the work of a step under its own record. It passes on the step's context, and uses
// the same key in every attempt of the step.
func reserve(ctx context.Context, guard *lambdaidem.Guard, execution string, order fulfilment, book func(context.Context) (string, error)) (string, error) {
	sum := sha256.Sum256([]byte(execution)) // an ARN may be longer than a key
	call := lambdaidem.Call{Operation: "reserve", Key: hex.EncodeToString(sum[:]), Payload: order}
	return lambdaidem.Do(ctx, guard, call, book)
}

// executions is a fake of the part of Lambda that starts durable executions.
type executions struct {
	started map[string][]byte // payloads by the name of the execution
	unnamed int
	calls   int
	lose    int // number of replies still to lose
}

func (x *executions) Invoke(_ context.Context, in *lambdasdk.InvokeInput, _ ...func(*lambdasdk.Options)) (*lambdasdk.InvokeOutput, error) {
	x.calls++
	name := aws.ToString(in.DurableExecutionName)
	payload, running := x.started[name]
	switch {
	case in.InvocationType != types.InvocationTypeEvent || !strings.Contains(aws.ToString(in.FunctionName), ":"):
		return nil, fmt.Errorf("%+v is not asynchronous, or names no version", in)
	case in.DurableExecutionName == nil:
		x.unnamed++
		name = fmt.Sprint("generated-", x.unnamed)
	case !executionName.MatchString(name):
		return nil, fmt.Errorf("%q is no name of an execution", name)
	case running && !bytes.Equal(payload, in.Payload):
		return nil, &types.DurableExecutionAlreadyStartedException{}
	case !running:
		if x.started == nil {
			x.started = map[string][]byte{}
		}
		x.started[name] = in.Payload
	}
	if x.lose > 0 {
		x.lose--
		return nil, errLost
	}
	return &lambdasdk.InvokeOutput{DurableExecutionArn: aws.String("arn/" + name)}, nil
}

// executionName matches the names of executions that Lambda accepts (AWS Lambda API Reference,
// "Execution").
var executionName = regexp.MustCompile(`^[a-zA-Z0-9-_]{1,64}$`)

func durableGuard(clock *idemtest.Clock) *lambdaidem.Guard {
	return keysGuard(memstore.New(), func(o *lambdaidem.Options) { o.Clock = clock.Now })
}

func TestDurable_ALostReplyStartsNoSecondExecution(t *testing.T) {
	clock, fake := idemtest.NewClock(), &executions{lose: 1}
	handler := newStarter(durableGuard(clock), fake)
	order := idemtest.Request{Path: "/orders", Key: "k-17", Body: `{"order_id":"o-17"}`}

	send := func(r idemtest.Request) events.APIGatewayV2HTTPResponse {
		t.Helper()
		answer, err := handler(idemtest.Invocation(t, 10*time.Second), r.APIGatewayV2())
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	if _, err := handler(idemtest.Invocation(t, 10*time.Second), order.APIGatewayV2()); !errors.Is(err, errLost) {
		t.Fatalf("the reply was lost, and the handler returned %v", err)
	}
	// The lease is kept, so no request runs before it ends.
	if answer := send(order); answer.StatusCode != http.StatusConflict || fake.calls != 1 {
		t.Errorf("while it is uncertain: %+v after %d calls", answer, fake.calls)
	}
	changed := order
	changed.Body = `{"order_id":"o-18"}`
	clock.Advance(13 * time.Second)
	if answer := send(changed); answer.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("another payload: %+v", answer)
	}
	first := send(order)
	if first.StatusCode != http.StatusAccepted || fake.calls != 2 || len(fake.started) != 1 {
		t.Errorf("%+v after %d calls, started %v", first, fake.calls, fake.started)
	}
	for name, payload := range fake.started {
		if string(payload) != order.Body {
			t.Errorf("%s was started with %s", name, payload)
		}
	}
	if again := send(order); again.Body != first.Body || !strings.HasPrefix(again.Body, "arn/") || fake.calls != 2 {
		t.Errorf("a replay: %+v after %d calls", again, fake.calls)
	}
	order.Key, order.Body = "k-18", "no JSON"
	if answer := send(order); answer.StatusCode != http.StatusBadRequest || fake.calls != 2 {
		t.Errorf("what is no order: %+v after %d calls", answer, fake.calls)
	}
}

// With Retryable in place of Uncertain, a lost reply starts no second execution either. A corrected
// payload is refused after the release, and a retry runs at once, under the same name.
func TestDurable_AReleasedStartKeepsItsPayloadAndItsName(t *testing.T) {
	clock, fake := idemtest.NewClock(), &executions{lose: 1}
	handler := durableGuard(clock).APIGatewayV2(func(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		var order fulfilment
		if err := json.Unmarshal([]byte(e.Body), &order); err != nil {
			return events.APIGatewayV2HTTPResponse{}, err
		}
		execution, err := start(ctx, fake, order)
		if errors.Is(err, errLost) {
			err = lambdaidem.Retryable(errLost)
		}
		return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusAccepted, Body: execution}, err
	})
	for _, c := range []struct {
		body          string
		status, calls int
	}{
		{`{"order_id":"o-17"}`, http.StatusServiceUnavailable, 1},
		{`{"order_id":"o-18"}`, http.StatusUnprocessableEntity, 1},
		{`{"order_id":"o-17"}`, http.StatusAccepted, 2},
	} {
		order := idemtest.Request{Path: "/orders", Key: "k-17", Body: c.body}
		answer, err := handler(idemtest.Invocation(t, 10*time.Second), order.APIGatewayV2())
		if err != nil || answer.StatusCode != c.status || fake.calls != c.calls || len(fake.started) != 1 {
			t.Errorf("%s: %+v, %v after %d calls, started %v; want %d after %d calls", c.body, answer, err, fake.calls, fake.started, c.status, c.calls)
		}
	}
}

// Even after the record has expired, a retry starts the execution under the same name, which is the
// same execution for as long as Lambda keeps it.
func TestDurable_TheNameOutlivesTheRecord(t *testing.T) {
	clock, fake := idemtest.NewClock(), &executions{}
	handler := newStarter(durableGuard(clock), fake)
	order := idemtest.Request{Path: "/orders", Key: "k-17", Body: `{"order_id":"o-17"}`}
	for range 2 {
		if answer, err := handler(t.Context(), order.APIGatewayV2()); err != nil || answer.StatusCode != http.StatusAccepted {
			t.Fatalf("%+v, %v", answer, err)
		}
		clock.Advance(25 * time.Hour)
	}
	if fake.calls != 2 || len(fake.started) != 1 {
		t.Errorf("%d calls, started %v", fake.calls, fake.started)
	}
}

func TestDurable_ADispatcherStartsOnce(t *testing.T) {
	clock, fake := idemtest.NewClock(), &executions{}
	dispatch := newDispatcher(durableGuard(clock), fake)
	deliver := func(queue, id string) {
		t.Helper()
		key := "k-17"
		m := events.SQSMessage{MessageId: id, EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:" + queue, Body: `{"order_id":"o-17"}`,
			MessageAttributes: map[string]events.SQSMessageAttribute{lambdaidem.MessageKey: {DataType: "String", StringValue: &key}}}
		got, err := dispatch(t.Context(), events.SQSEvent{Records: []events.SQSMessage{m}})
		if err != nil || len(got.BatchItemFailures) > 0 {
			t.Errorf("%+v, %v", got, err)
		}
	}
	deliver("orders", "m-1")
	deliver("orders", "m-1")
	deliver("orders", "m-2") // a redrive
	deliver("orders-dlq", "m-3")
	if fake.calls != 1 || len(fake.started) != 1 {
		t.Errorf("%d calls, started %v", fake.calls, fake.started)
	}
}

// A start without a guard has no name, because a retry would have a different one.
func TestDurable_UnguardedStartsHaveNoName(t *testing.T) {
	fake := &executions{}
	for range 2 {
		if _, err := start(t.Context(), fake, fulfilment{"o-17"}); err != nil {
			t.Fatal(err)
		}
	}
	if fake.unnamed != 2 {
		t.Errorf("%d starts without a name, and %v", fake.unnamed, fake.started)
	}
}

// A record's id can't be the name of an execution, nor can every client's key. A downstream key
// can.
func TestDurable_WhatCanBeAName(t *testing.T) {
	_, err := lambdaidem.Do(t.Context(), keysGuard(memstore.New()), lambdaidem.Call{Operation: "start", Key: "order 17"},
		func(ctx context.Context) (int, error) {
			for text, fits := range map[string]bool{
				lambdaidem.DownstreamKey(ctx, "fulfil-order"): true,
				lambdaidem.RecordID(ctx):                      false,
				lambdaidem.Key(ctx):                           false,
			} {
				if executionName.MatchString(text) != fits {
					t.Errorf("%q fits: %v", text, !fits)
				}
			}
			return 0, nil
		})
	if err != nil {
		t.Error(err)
	}
}

// A step that runs again gets the result of its first attempt.
func TestDurable_ARecordInsideAStep(t *testing.T) {
	clock, store := idemtest.NewClock(), idemtest.NewStore(nil)
	guard := keysGuard(store, func(o *lambdaidem.Options) { o.Clock = clock.Now })
	runs := 0
	step := func(ctx context.Context) (string, error) {
		return reserve(ctx, guard, "arn:aws:lambda:us-east-1:123456789012:function:fulfil-order:7/durable-execution/n/i", fulfilment{"o-17"},
			func(context.Context) (string, error) { runs++; return "r-1", nil })
	}
	// The step has completed, but the invocation dies before it saves the checkpoint.
	if id, err := step(idemtest.Invocation(t, 10*time.Second)); id != "r-1" || err != nil {
		t.Fatal(id, err)
	}
	if id, err := step(idemtest.Invocation(t, 10*time.Second)); id != "r-1" || err != nil || runs != 1 {
		t.Errorf("%s, %v after %d runs", id, err, runs)
	}
}

// If the attempt of a step died while it held the lease, the step is refused until the lease has
// ended.
func TestDurable_AStepWaitsForTheLease(t *testing.T) {
	clock, store := idemtest.NewClock(), idemtest.NewStore(nil)
	guard := keysGuard(store, func(o *lambdaidem.Options) { o.Clock = clock.Now })
	runs := 0
	step := func(ctx context.Context) (string, error) {
		return reserve(ctx, guard, "arn", fulfilment{"o-17"}, func(context.Context) (string, error) { runs++; return "r-1", nil })
	}
	store.Next(idemtest.Complete, idemtest.KillBefore)
	idemtest.Crash(t, 10*time.Second, func(ctx context.Context) { _, _ = step(ctx) })
	if _, err := step(idemtest.Invocation(t, 10*time.Second)); !errors.Is(err, lambdaidem.ErrInProgress) {
		t.Errorf("before the lease is over: %v", err)
	}
	clock.Advance(13 * time.Second) // longer than the function's timeout and MaxSkew
	if id, err := step(idemtest.Invocation(t, 10*time.Second)); id != "r-1" || err != nil || runs != 2 {
		t.Errorf("%s, %v after %d runs", id, err, runs)
	}
}

// errSuspended stands for the error that the operations of a durable execution return when it is
// suspended.
var errSuspended = errors.New("the execution is suspended")

// A guard inside a durable handler, around the part that has the SDK's context, does not work: a
// suspension is an error for it, so it releases the record, and a duplicate runs beside the
// suspended execution.
func TestDurable_AGuardInsideADurableHandlerIsOpenWhileItWaits(t *testing.T) {
	guard, runs := keysGuard(memstore.New()), 0
	body := func(context.Context) (int, error) { runs++; return 0, errSuspended }
	call := lambdaidem.Call{Operation: "fulfil", Key: "k-17"}
	for range 2 { // the first is suspended, the second is its duplicate
		if _, err := lambdaidem.Do(t.Context(), guard, call, body); !errors.Is(err, errSuspended) {
			t.Error(err)
		}
	}
	if runs != 2 {
		t.Errorf("%d ran", runs)
	}
	clock := idemtest.NewClock()
	held := keysGuard(memstore.New(), func(o *lambdaidem.Options) { o.Policy, o.Clock = lambdaidem.Hold, clock.Now })
	_, _ = lambdaidem.Do(idemtest.Invocation(t, 10*time.Second), held, call, body)
	clock.Advance(13 * time.Second)
	if _, err := lambdaidem.Do(idemtest.Invocation(t, 10*time.Second), held, call, body); !errors.Is(err, lambdaidem.ErrAttemptAbandoned) {
		t.Errorf("under Hold a suspended execution got %v", err)
	}
}

// A guard outside a durable handler does not work: it sees a different event in each invocation of
// an execution, or stores "pending" as the answer.
func TestDurable_AGuardOutsideADurableHandlerBreaksIt(t *testing.T) {
	type invocation struct{ Arn, CheckpointToken string }
	pending := func(context.Context, invocation) (string, error) { return `{"Status":"PENDING"}`, nil }
	byArn := func(_ context.Context, in invocation) (string, error) { return in.Arn, nil }

	handler := lambdaidem.Handler(keysGuard(memstore.New()), "fulfil", byArn, pending)
	if _, err := handler(t.Context(), invocation{"arn", "token-1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := handler(t.Context(), invocation{"arn", "token-2"}); !errors.Is(err, lambdaidem.ErrPayloadMismatch) {
		t.Errorf("the second invocation of an execution got %v", err)
	}

	runs, guard := 0, keysGuard(memstore.New())
	for range 2 { // without a payload, so the second invocation gets a replay
		_, err := lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "fulfil", Key: "arn"},
			func(context.Context) (string, error) { runs++; return `{"Status":"PENDING"}`, nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	if runs != 1 {
		t.Errorf("the second invocation ran, %d in all", runs)
	}
}
