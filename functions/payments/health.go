package main

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore"
)

// newHealth returns the handler of GET /health. It checks whether the tables and the
// permissions allow a payment. The guard runs it unguarded, because it is a GET.
//
// Everybody with a token can call it, customers too. The response therefore has only the
// status. The log has the problems.
func newHealth(store *dynamostore.Store, payments, accounts string) *dynamostore.HealthCheck {
	// The key of the health check's test requests. No payment and no account has this id.
	nobody := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "health check"}}
	return dynamostore.NewHealthCheck(store, func(o *dynamostore.HealthOptions) {
		o.Enlisted = []dynamostore.EnlistedTable{
			{Table: payments, Key: nobody, Actions: []string{"PutItem"}},
			{Table: accounts, Key: nobody, Actions: []string{"UpdateItem"}},
		}
	})
}
