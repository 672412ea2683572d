package dynamostore

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// These environment variables pass the table to the process whose handler calls os.Exit.
const (
	exitTable    = "LAMBDAIDEM_TEST_EXIT_TABLE"
	exitEndpoint = "LAMBDAIDEM_TEST_EXIT_ENDPOINT"
	exitCode     = 42
)

// guarded calls fn under a guard on the table, with the given clock.
func guarded(ctx context.Context, client *dynamodb.Client, table string, clock func() time.Time, fn func(context.Context) (int, error)) (int, error) {
	guard := lambdaidem.New(New(client, table, patient), func(o *lambdaidem.Options) {
		o.Namespace, o.LeaseDuration, o.Observer, o.Clock = "exit", 10*time.Second, lambdaidem.Discard, clock
	})
	return lambdaidem.Do(ctx, guard, lambdaidem.Call{Operation: "charge", Key: "order-1"}, fn)
}

// os.Exit runs no deferred function, so nothing is released. Other attempts are refused until the
// lease ends, and then the next attempt runs.
func TestL6_OsExitLeavesTheLease(t *testing.T) {
	if table := os.Getenv(exitTable); table != "" {
		client := dynamodb.New(dynamodb.Options{
			Region: "us-east-1", BaseEndpoint: aws.String(os.Getenv(exitEndpoint)),
			Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
		})
		_, err := guarded(t.Context(), client, table, time.Now, func(context.Context) (int, error) {
			os.Exit(exitCode)
			return 0, nil
		})
		t.Fatalf("the handler did not exit: %v", err)
	}

	client, table := freshTable(t)
	// The child process uses other credentials than this one. DynamoDB Local has one set of tables
	// for all credentials.
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestL6_OsExitLeavesTheLease$") //nolint:gosec // the child runs this test again
	child.Env = append(os.Environ(), exitTable+"="+table, exitEndpoint+"="+*client.Options().BaseEndpoint)
	out, err := child.CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != exitCode {
		t.Fatalf("the process ended with %v:\n%s", err, out)
	}

	attempt := 0
	run := func(ctx context.Context) (int, error) {
		attempt = lambdaidem.Attempt(ctx)
		return attempt, nil
	}
	if _, err := guarded(t.Context(), client, table, time.Now, run); !errors.Is(err, lambdaidem.ErrInProgress) {
		t.Errorf("within the lease: %v, want %v", err, lambdaidem.ErrInProgress)
	}
	later := func() time.Time { return time.Now().Add(time.Minute) }
	if n, err := guarded(t.Context(), client, table, later, run); n != 2 || err != nil {
		t.Errorf("after the lease: attempt %d, %v; want attempt 2", n, err)
	}
}
