// Command coldstart links only what every guarded function links: a guard and its store.
package main

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

func main() {
	lambdaidem.New(dynamostore.New(dynamodb.New(dynamodb.Options{Region: "eu-west-1"}), "idempotency"))
}
