// Command watch is a Lambda function on a schedule. It finds leases whose attempts died, and
// writes their number and their age as CloudWatch metrics. template.yaml has alarms on these
// metrics.
//
// The function only reads. It releases no record, because a release states that the attempt had
// no effect, and the effects of an attempt that died are unknown. Under policy Rerun, no release
// is needed: the next request takes the record over. A release would only let another payload
// use the key, and let a guard with policy Hold run a handler that it must not run. Under
// policy Hold, a person decides.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/functions/internal/environment"
	"github.com/lambdaidem/toolkit/functions/internal/leaseindex"
	"github.com/lambdaidem/toolkit/lambdaidem/emf"
)

// watchedRoutes is the environment variable with the routes and operations that get metrics of
// their own, separated by commas. They are spelled as in the metrics of their guards, such as
// "POST /payments". template.yaml sets it.
const watchedRoutes = "WATCHED_ROUTES"

// rate is the maximum number of requests to the table per second. After an incident there may
// be many dead leases, and the other functions need the table's capacity.
const rate = 250

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	env, err := environment.Load(context.Background(), environment.IdempotencyTable, leaseindex.Variable, watchedRoutes)
	if err != nil {
		slog.Error("the watch function can't start", "error", err)
		os.Exit(1)
	}
	store := dynamostore.New(env.DynamoDB, env.Get(environment.IdempotencyTable), leaseindex.Option)
	watch := watch{
		leases: func(ctx context.Context) leases {
			return store.DeadLeases(ctx, func(o *dynamostore.DeadLeasesOptions) { o.Rate = rate })
		},
		ttl: func(ctx context.Context) (bool, error) {
			return ttlEnabled(ctx, env.DynamoDB, env.Get(environment.IdempotencyTable))
		},
		routes:  strings.Split(env.Get(watchedRoutes), ","),
		metrics: emf.New(func(o *emf.Options) { o.Service = env.Service() }),
		clock:   time.Now,
		log:     slog.Default(),
	}
	lambda.Start(watch.look)
}

// ttlEnabled reports whether DynamoDB deletes expired items of the table, by the TTL attribute
// expiration.
func ttlEnabled(ctx context.Context, client *dynamodb.Client, table string) (bool, error) {
	out, err := client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &table})
	if err != nil {
		return false, fmt.Errorf("describe the time to live of %s: %w", table, err)
	}
	ttl := out.TimeToLiveDescription
	if ttl == nil || aws.ToString(ttl.AttributeName) != "expiration" {
		return false, nil
	}
	return ttl.TimeToLiveStatus == types.TimeToLiveStatusEnabled || ttl.TimeToLiveStatus == types.TimeToLiveStatusEnabling, nil
}
