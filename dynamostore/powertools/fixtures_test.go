package powertools_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.uber.org/goleak"

	"github.com/lambdaidem/toolkit/dynamostore/powertools"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	request  = events.APIGatewayV2HTTPRequest
	response = events.APIGatewayV2HTTPResponse
	item     = map[string]types.AttributeValue
)

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// reads is a table with one item, which every GetItem returns. It records the requests.
type reads struct {
	item   item
	err    error
	inputs []*dynamodb.GetItemInput
}

func (r *reads) GetItem(_ context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	r.inputs = append(r.inputs, in)
	return &dynamodb.GetItemOutput{Item: r.item}, r.err
}

// migration is a guarded handler of a function that takes over from one in Python.
type migration struct {
	table  *reads
	clock  *idemtest.Clock
	events idemtest.Recorder
	handle func(context.Context, request) (response, error)
	runs   int // of the handler
}

func migrate(policy lambdaidem.Policy, optFns ...func(*powertools.Options)) *migration {
	m := &migration{table: &reads{}, clock: idemtest.NewClock()}
	m.handle = m.guard(policy).APIGatewayV2(powertools.Handler(m.records(powertools.Python, optFns...), body, m.create))
	return m
}

func (m *migration) guard(policy lambdaidem.Policy) *lambdaidem.Guard {
	return lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) {
		o.Policy, o.Clock, o.Observer = policy, m.clock.Now, &m.events
	})
}

func (m *migration) records(language powertools.Language, optFns ...func(*powertools.Options)) *powertools.Records {
	clock := func(o *powertools.Options) { o.Clock = m.clock.Now }
	return powertools.New(m.table, "idempotency", language, "payments.app.handler", append([]func(*powertools.Options){clock}, optFns...)...)
}

// body selects the body, as the expression powertools_json(body) does.
func body(_ context.Context, e request) (powertools.Selection, error) {
	return powertools.Selection{Data: json.RawMessage(e.Body)}, nil
}

func (m *migration) create(context.Context, request) (response, error) {
	m.runs++
	return response{StatusCode: 201, Body: "created in Go"}, nil
}

// send sends a request, which is the same in every call, and returns the answer. If the answer is a
// problem document, send also returns its code.
func (m *migration) send(t *testing.T) (response, lambdaidem.Code) {
	t.Helper()
	e := idemtest.Request{Path: "/payments", Key: "order-1", Body: `{"order": 42}`}.APIGatewayV2()
	answer, err := m.handle(idemtest.Invocation(t, time.Minute), e)
	if err != nil {
		t.Fatal(err)
	}
	var problem struct{ Code lambdaidem.Code }
	_ = json.Unmarshal([]byte(answer.Body), &problem)
	return answer, problem.Code
}

// stored returns a completed record that expires in an hour, with the given attributes changed.
func (m *migration) stored(data string, changed item) item {
	itm := item{
		"id":                     str("payments.app.handler#8c5cd0cb0ec9cbcf6d6ba1ec4a3b5d8e"),
		"status":                 str("COMPLETED"),
		"expiration":             number(m.clock.Now().Add(time.Hour).Unix()),
		"in_progress_expiration": number(m.clock.Now().Add(-time.Hour).UnixMilli()),
		"data":                   str(data),
	}
	maps.Copy(itm, changed)
	maps.DeleteFunc(itm, func(_ string, v types.AttributeValue) bool { return v == nil })
	return itm
}

// running returns a record in progress whose invocation ends at the given time.
func (m *migration) running(end time.Time) item {
	return m.stored("", item{"status": str("INPROGRESS"), "data": nil, "in_progress_expiration": number(end.UnixMilli())})
}

// errorType returns the errorType that Lambda reports for an error.
func errorType(err error) string {
	if own, ok := errors.AsType[messages.InvokeResponse_Error](err); ok {
		return own.Type
	}
	return reflect.TypeOf(err).Name()
}
