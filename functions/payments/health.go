package main

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore"
)

// newHealth answers GET /health: whether a payment can be made, as far as tables
// and permissions go. It is a GET, which the guard lets pass.
//
// All who have a token may ask, customers too, so it tells the status alone; what is
// wrong is in the log.
func newHealth(store *dynamostore.Store, payments, accounts string) *dynamostore.HealthCheck {
	// No payment and no account has such an id.
	nobody := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "health check"}}
	return dynamostore.NewHealthCheck(store, func(o *dynamostore.HealthOptions) {
		o.Enlisted = []dynamostore.EnlistedTable{
			{Table: payments, Key: nobody, Actions: []string{"PutItem"}},
			{Table: accounts, Key: nobody, Actions: []string{"UpdateItem"}},
		}
	})
}
