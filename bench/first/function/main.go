// Command function is the program whose first request bench/first measures. Like a Lambda function,
// it has an init phase, and then serves requests one at a time:
//
//	function SIDE TABLE MEGABYTES
//
// SIDE is bare (the AWS SDK alone), toolkit, or warm (the toolkit with Store.Warm). While the process
// serves requests, it has the processor share of a function with MEGABYTES of memory, or all
// processors if MEGABYTES is 0. Its init phase has no limit, as on Lambda. The process is idle for a
// moment before each request. It prints a JSON object with the durations of the init phase (init), of
// the first request (first) and of a later one (later), in nanoseconds.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/bench/internal/quota"
	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

const (
	// laterRequests is the number of requests after the first one. The duration of a later request
	// is the median over the second half of these requests.
	laterRequests = 8
	// idle is the time between requests. A request that comes after a pause takes longer than one that
	// follows another at once, because the processor has to wake up. The first request always comes
	// after a pause, so the others do too. After the pause, a small function has its whole share of the
	// processor again, because idle is longer than quota.Period.
	idle = 60 * time.Millisecond
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "function:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	if len(args) != 3 {
		return fmt.Errorf("%d arguments; want SIDE TABLE MEGABYTES", len(args))
	}
	megabytes, err := strconv.Atoi(args[2])
	if err != nil {
		return fmt.Errorf("MEGABYTES: %w", err)
	}
	start := time.Now()
	serve, err := initialize(ctx, args[0], args[1])
	if err != nil {
		return err
	}
	out := map[string]time.Duration{"init": time.Since(start)}
	if megabytes > 0 {
		leave, err := quota.Limit(megabytes)
		if err != nil {
			return err
		}
		defer func() { _ = leave() }()
	}
	took := make([]time.Duration, 1+laterRequests)
	for i := range took {
		time.Sleep(idle)
		start := time.Now()
		if err := serve(ctx, rand.Text()); err != nil {
			return err
		}
		took[i] = time.Since(start)
	}
	later := took[1+laterRequests/2:]
	slices.Sort(later)
	out["first"], out["later"] = took[0], later[len(later)/2]
	return json.NewEncoder(os.Stdout).Encode(out)
}

// initialize is the init phase. It returns a function that serves one request with the key.
func initialize(ctx context.Context, side, table string) (serve func(ctx context.Context, key string) error, err error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	client := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.DisableValidateResponseChecksum = true // DynamoDB Local sends error responses without a checksum
	})
	if side == "bare" {
		return func(ctx context.Context, key string) error { return twoWrites(ctx, client, table, key) }, nil
	}
	store := dynamostore.New(client, table)
	if side == "warm" {
		if warmed := store.Warm(ctx); warmed.Err != nil {
			return nil, warmed.Err
		}
	}
	handler := lambdaidem.New(store).APIGatewayV2(create)
	return func(ctx context.Context, key string) error {
		e := events.APIGatewayV2HTTPRequest{Version: "2.0", RouteKey: "POST /payments", RawPath: "/payments", Body: `{"amount":1299}`,
			Headers: map[string]string{"content-type": "application/json", "idempotency-key": key}}
		e.RequestContext.RouteKey, e.RequestContext.HTTP.Method, e.RequestContext.HTTP.Path = e.RouteKey, http.MethodPost, e.RawPath
		resp, err := handler(ctx, e)
		if err == nil && resp.StatusCode != http.StatusCreated {
			err = fmt.Errorf("status %d: %s", resp.StatusCode, resp.Body)
		}
		return err
	}, nil
}

const body = `{"id":"pay_5f1c8a2e","amount":1299}`

func create(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusCreated, Headers: map[string]string{"Content-Type": "application/json"}, Body: body}, nil
}

// twoWrites makes a handler idempotent by hand: it locks the key with a conditional PutItem, and
// stores the answer with a conditional UpdateItem. It writes what the toolkit writes too, so that
// DynamoDB Local has as much to do: a token, the end of the lease, and a fingerprint.
func twoWrites(ctx context.Context, client *dynamodb.Client, table, key string) error {
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	number := func(n int64) types.AttributeValue {
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
	}
	now, token := time.Now(), text(rand.Text())
	expiration := number(now.Add(24 * time.Hour).Unix())
	_, err := client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String(table),
		Item: map[string]types.AttributeValue{
			"id": text(key), "status": text("INPROGRESS"), "token": token, "validation": text(rand.Text()),
			"started_at": number(now.UnixMilli()), "in_progress_expiration": number(now.Add(time.Minute).UnixMilli()), "expiration": expiration,
		},
		ConditionExpression:                 aws.String("attribute_not_exists(id) OR expiration <= :now OR #status = :in_progress AND in_progress_expiration <= :now_ms"),
		ExpressionAttributeNames:            map[string]string{"#status": "status"},
		ExpressionAttributeValues:           map[string]types.AttributeValue{":now": number(now.Unix()), ":now_ms": number(now.UnixMilli()), ":in_progress": text("INPROGRESS")},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if err != nil {
		return err
	}
	_, err = client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String(table), Key: map[string]types.AttributeValue{"id": text(key)},
		ConditionExpression:      aws.String("#status = :in_progress AND #token = :token"),
		UpdateExpression:         aws.String("SET #status = :completed, #data = :data, completed_at = :now_ms, expiration = :expiration REMOVE in_progress_expiration"),
		ExpressionAttributeNames: map[string]string{"#status": "status", "#token": "token", "#data": "data"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":in_progress": text("INPROGRESS"), ":completed": text("COMPLETED"), ":token": token, ":data": text(body),
			":now_ms": number(time.Now().UnixMilli()), ":expiration": expiration,
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return err
}
