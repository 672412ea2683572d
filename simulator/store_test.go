package simulator

import (
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/internal/memdynamo"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/storetest"
)

// The conformance suite passes on the simulator's DynamoDB as it does on DynamoDB Local. So what the
// simulator finds is a mistake of the protocol, and not of the simulated DynamoDB.
func TestWirePassesStoretest(t *testing.T) {
	storetest.Test(t, func(t *testing.T) lambdaidem.Store {
		db := memdynamo.New(time.Now)
		for _, r := range tableRequests {
			if status, _, out := db.Serve(r.op, []byte(r.body)); status != http.StatusOK {
				t.Fatalf("%s: %s", r.op, out)
			}
		}
		client := dynamodb.New(dynamodb.Options{
			Region: "eu-central-1", BaseEndpoint: aws.String("http://dynamodb.simulated"),
			Credentials: credentials.NewStaticCredentialsProvider("simulated", "simulated", ""),
			HTTPClient:  &memdynamo.Client{DB: db},
		})
		return dynamostore.New(client, table)
	})
}
