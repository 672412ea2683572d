// Command watch is a Lambda function on a schedule: it looks for leases whose
// attempts died, and writes how many there are, and since when, as CloudWatch metrics.
// An alarm on them is in template.yaml.
//
// It reads and changes nothing. Releasing what it finds would gain nothing and say
// what nobody knows. A release says that an attempt had no effect, while all that
// is known of one that died is that its effects are unknown. Under policy Rerun
// the next request takes the lease over by itself, without any release; a release
// would only let a corrected payload use the key, and a reader under policy Hold
// run what it must not. Under policy Hold it is a person who decides.
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

// watchedRoutes is a variable that template.yaml sets: the routes and operations that
// may have metrics of their own, parted by commas, as their guards' own metrics have
// them.
const watchedRoutes = "WATCHED_ROUTES"

// rate is of the requests to the table, in a second: after a bad hour there may be
// many leases, and the table is in use.
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

// ttlEnabled reports whether DynamoDB deletes what has expired in the table, by its
// attribute expiration.
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
