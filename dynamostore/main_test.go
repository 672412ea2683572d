package dynamostore

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"go.uber.org/goleak"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// onSDK makes the tests' clients such that their stores use the SDK's transport; see
// TestOnTheSDKsTransport.
var onSDK bool

func switched(o *dynamodb.Options) {
	if onSDK {
		o.MeterProvider = usersMeter{}
	}
}

// freshTable creates a table for the test.
func freshTable(tb testing.TB, optFns ...func(*Options)) (*dynamodb.Client, string) {
	tb.Helper()
	server := ddblocal.ForTest(tb)
	tb.Cleanup(server.CloseIdleConnections)
	client, table := dynamodb.New(server.Client().Options(), switched), "test-"+rand.Text()
	if err := CreateTable(tb.Context(), client, table, optFns...); err != nil {
		tb.Fatal(err)
	}
	dropAfter(tb, client, table)
	return client, table
}

func dropAfter(tb testing.TB, client *dynamodb.Client, table string) {
	tb.Helper()
	tb.Cleanup(func() {
		_, err := client.DeleteTable(context.WithoutCancel(tb.Context()), &dynamodb.DeleteTableInput{TableName: aws.String(table)})
		if err != nil {
			tb.Error(err)
		}
	})
}

// over returns a client whose HTTP requests go through a faultyWire.
func over(client *dynamodb.Client, faults ...fault) (*dynamodb.Client, *faultyWire) {
	w := &faultyWire{next: client.Options().HTTPClient, faults: faults}
	return dynamodb.New(client.Options(), func(o *dynamodb.Options) { o.HTTPClient = w }), w
}

// The time and the claim with which the tests begin. It is the current time, because DynamoDB Local
// deletes items that have expired by its own clock.
var (
	now   = time.Now().Truncate(time.Second).UTC()
	claim = lambdaidem.Claim{
		ID: "idem#test", Scope: "shop/POST /payments", Fingerprint: "f1", Token: "token-1",
		Now: now, LeaseEnd: now.Add(30 * time.Second), Expires: now.Add(time.Hour),
	}
	lease  = lambdaidem.Lease{ID: claim.ID, Token: claim.Token, Expires: now.Add(2 * time.Hour)}
	result = lambdaidem.Result{
		Outcome: lambdaidem.OutcomeSucceeded, Value: []byte(`{"statusCode":201}`),
		At: now.Add(time.Second), Expires: now.Add(24 * time.Hour),
	}
)

// claimBy returns the claim with another token.
func claimBy(token string) lambdaidem.Claim {
	c := claim
	c.Token = token
	return c
}

// quick makes retries immediate.
func quick(o *Options) { o.Random = func() float64 { return 0 } }

// patient sets a long timeout, so that a busy machine does not look like a fault.
func patient(o *Options) { o.AttemptTimeout = time.Minute }

// wantStoreError fails the test unless err is a StoreError with the given values.
func wantStoreError(t *testing.T, err error, op string, reason lambdaidem.Reason, notApplied bool) {
	t.Helper()
	var se *lambdaidem.StoreError
	if !errors.As(err, &se) {
		t.Fatalf("error is %v; want a StoreError", err)
	}
	if se.Op != op || se.Reason != reason || se.NotApplied != notApplied {
		t.Errorf("StoreError is %q %q NotApplied=%v; want %q %q NotApplied=%v\n%v", se.Op, se.Reason, se.NotApplied, op, reason, notApplied, err)
	}
}
