package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/internal/memdynamo"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// layout is a way to store answers.
type layout struct {
	name   string
	inline bool // only in the record; an answer that does not fit has no figures
	set    func(*dynamostore.Options)
}

// maxInline is the maximum value of Options.MaxInline, in bytes.
const maxInline = 384 << 10

// layouts has the layouts, which differ in MaxInline and CompressFrom.
var layouts = []layout{
	{"inline", true, func(o *dynamostore.Options) { o.CompressFrom, o.MaxInline = math.MaxInt, maxInline }},
	{"inline, gzip", true, func(o *dynamostore.Options) { o.MaxInline = maxInline }},
	{"parts", false, func(o *dynamostore.Options) { o.CompressFrom, o.MaxInline = math.MaxInt, 1 }},
	{"parts, gzip", false, func(o *dynamostore.Options) { o.MaxInline = 1 }},
	{"defaults", false, func(*dynamostore.Options) {}},
}

// Indexes in layouts.
const (
	inlineGzip = 1
	partsGzip  = 3
	byDefault  = 4
)

// mode is a way in which a handler makes two writes of its own, a put and an update. Each item is
// smaller than 1 KB.
type mode struct {
	name       string
	transacts  bool
	optimistic bool
	write      func(ctx context.Context, r *rig, id string) error
}

var modes = []mode{
	{"by its own client", false, false, writeAlone},
	{"enlisted", true, false, enlist},
	{"optimistic", true, true, enlist},
}

// silent is the mode of a handler that writes nothing.
var silent = mode{"", false, false, func(context.Context, *rig, string) error { return nil }}

// figures has the units that each kind of request consumes.
type figures struct {
	first, replay, conflict units
	lookedUp                units // a replay by a guard with Options.Repeated, which reads the record first
	fits                    bool  // the layout can store the answer
}

// rig is a table, in memory or in DynamoDB, with a client whose requests are counted.
type rig struct {
	meter  *meter
	client *dynamodb.Client // its requests are counted
	clock  func() time.Time
	table  string

	longScope bool // namespace, route and caller are as long as a record's scope allows
}

// inMemory returns a rig with package memdynamo's DynamoDB, which counts units by AWS's rule. A
// test compares the counts with those of DynamoDB Local.
func inMemory(ctx context.Context) (*rig, error) {
	// Only the digits of the time matter: a number with trailing zeros is smaller.
	moment := time.Date(2026, 11, 22, 12, 34, 56, 789e6, time.UTC)
	clock := func() time.Time { return moment }
	r, err := newRig(ctx, clock, dynamodb.New(dynamodb.Options{
		Region:       "us-east-1",
		Credentials:  aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("local", "local", "")),
		BaseEndpoint: aws.String("http://dynamodb.invalid"),
		HTTPClient:   &memdynamo.Client{DB: memdynamo.New(clock)},
	}))
	r.meter.computes = true
	return r, err
}

func newRig(ctx context.Context, clock func() time.Time, client *dynamodb.Client) (*rig, error) {
	r := &rig{meter: newMeter(client), clock: clock, table: "cost-" + rand.Text()}
	r.client = r.meter.watched(client)
	return r, r.createTable(ctx, r.table, func(*dynamostore.Options) {})
}

// createTable creates a table. If the meter computes the units of the index of leases, the table
// has no index.
func (r *rig) createTable(ctx context.Context, table string, set func(*dynamostore.Options)) error {
	return dynamostore.CreateTable(ctx, r.meter.items, table, set, func(o *dynamostore.Options) {
		if r.meter.computes {
			o.LeaseIndex = ""
		}
	})
}

// measure sends a request for the first time, then again, and then a duplicate while another
// request is in progress. It returns the units that each of them consumes.
func (r *rig) measure(ctx context.Context, l layout, m mode, answer events.APIGatewayV2HTTPResponse) (figures, error) {
	store := dynamostore.New(r.client, r.table, l.set, func(o *dynamostore.Options) { o.AttemptTimeout = time.Minute })
	guard := lambdaidem.New(store, func(o *lambdaidem.Options) {
		o.Clock, o.Observer, o.Namespace, o.Optimistic = r.clock, lambdaidem.Discard, "payments-prod", m.optimistic
		if r.longScope {
			o.Namespace = long
		}
	})
	handler := func(ctx context.Context, _ events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		return answer, m.write(ctx, r, lambdaidem.RecordID(ctx))
	}
	serve := guard.APIGatewayV2(handler)
	lookUp := guard.With(func(o *lambdaidem.Options) { o.Repeated = func(*lambdaidem.Request) bool { return true } }).APIGatewayV2(handler)
	ctx = invoked(ctx)
	f := figures{fits: true}
	key := rand.Text()
	r.meter.take()
	for _, one := range []struct {
		serve    lambdaidem.APIGatewayV2Handler
		spent    *units
		replayed bool
	}{{serve, &f.first, false}, {serve, &f.replay, true}, {lookUp, &f.lookedUp, true}} {
		got, err := one.serve(ctx, r.request(key))
		*one.spent = r.meter.take()
		_, marked := got.Headers["X-Idempotency-Replayed"]
		if err == nil && (got.StatusCode != answer.StatusCode || got.Body != answer.Body || marked != one.replayed) {
			err = fmt.Errorf("got %d with %d bytes, replayed %v", got.StatusCode, len(got.Body), marked)
		}
		if err != nil {
			return f, fmt.Errorf("an answer of %d bytes, %s: %w", len(answer.Body), l.name, err)
		}
	}
	f.fits = !l.inline || f.replay.read == 0
	if m.optimistic { // a duplicate runs the handler and its transaction is refused, as for a replay
		f.conflict = f.replay
		return f, nil
	}
	var err error
	f.conflict, err = r.conflict(ctx, guard)
	return f, err
}

// conflict returns the units that a duplicate consumes while the first request is in progress.
func (r *rig) conflict(ctx context.Context, guard *lambdaidem.Guard) (units, error) {
	serve := guard.APIGatewayV2(func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		return events.APIGatewayV2HTTPResponse{}, lambdaidem.Uncertain(errors.New("still at it"))
	})
	e := r.request(rand.Text())
	if _, err := serve(ctx, e); err == nil {
		return units{}, errors.New("an uncertain end was answered")
	}
	r.meter.take()
	got, err := serve(ctx, e)
	if err == nil && got.StatusCode != http.StatusConflict {
		err = fmt.Errorf("a request in progress was answered %d", got.StatusCode)
	}
	return r.meter.take(), err
}

// long is a part of a scope that is longer than the maximum, so it is shortened. It consists of
// spaces, each of which is escaped as three bytes.
var long = strings.Repeat(" ", 300)

func (r *rig) request(key string) events.APIGatewayV2HTTPRequest {
	e := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: "POST /payments", RawPath: "/payments", Body: `{"amount":1250,"currency":"EUR"}`,
		Headers: map[string]string{"content-type": "application/json", "idempotency-key": key},
	}
	e.RequestContext.RouteKey = e.RouteKey
	e.RequestContext.HTTP.Method, e.RequestContext.HTTP.Path = http.MethodPost, e.RawPath
	e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{
			Claims: map[string]string{"iss": "https://login.example.com/", "sub": "u-17"},
		},
	}
	if r.longScope {
		e.RouteKey += "/" + long
		e.RequestContext.RouteKey = e.RouteKey
		e.RequestContext.Authorizer.JWT.Claims["sub"] = long
	}
	return e
}

// The handler's two writes: one creates an item, the other creates or updates an item.

const (
	addition = "ADD #balance :amount"
	absent   = "attribute_not_exists(id)"
)

func payment(id string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"id":        &types.AttributeValueMemberS{Value: "payment/" + id},
		"reference": &types.AttributeValueMemberS{Value: "dinner"},
		"amount":    &types.AttributeValueMemberN{Value: "1250"},
	}
}

func account(id string) (key map[string]types.AttributeValue, names map[string]string, values map[string]types.AttributeValue) {
	return map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "account/" + id}},
		map[string]string{"#balance": "balance"},
		map[string]types.AttributeValue{":amount": &types.AttributeValueMemberN{Value: "-1250"}}
}

func writeAlone(ctx context.Context, r *rig, id string) error {
	if _, err := r.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &r.table, Item: payment(id), ConditionExpression: aws.String(absent),
	}); err != nil {
		return err
	}
	key, names, values := account(id)
	_, err := r.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &r.table, Key: key, UpdateExpression: aws.String(addition), ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	})
	return err
}

func enlist(ctx context.Context, r *rig, id string) error {
	tx := dynamostore.Enlist(ctx)
	tx.Put("payment", types.Put{TableName: &r.table, Item: payment(id), ConditionExpression: aws.String(absent)})
	key, names, values := account(id)
	tx.Update("account", types.Update{
		TableName: &r.table, Key: key, UpdateExpression: aws.String(addition), ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	})
	return nil
}

// invoked returns the context of a Lambda invocation. A record contains its request id, which adds
// to the size of the item.
func invoked(ctx context.Context) context.Context {
	return lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{AwsRequestID: "6bc28136-xmpl-4365-b021-0ce6b2e64ab0"})
}
