package main

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// This file has a handler that enlists two writes: a payment, and the new balance of an account.

// accounts is the number of accounts. It is the number of operations in a block, so that concurrent
// transactions never debit the same account.
const accounts = 4 * maxAtOnce

// accountHeader is the header that names the account of a request. Headers are not part of the
// fingerprint, so all requests have the same one.
const accountHeader = "x-account"

func accountOf(i int) string { return fmt.Sprintf("account/%04d", i%accounts) }

func paymentOf(record string) string { return "payment/" + record }

// payFrom returns the handler that enlists the two writes on the table.
func payFrom(table string) handler {
	return func(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		tx := dynamostore.Enlist(ctx)
		tx.Put("payment", types.Put{
			TableName: &table, ConditionExpression: aws.String("attribute_not_exists(id)"),
			Item: map[string]types.AttributeValue{
				"id": str(paymentOf(lambdaidem.RecordID(ctx))), "account": str(e.Headers[accountHeader]), "amount": number(129950), "currency": str("EUR"),
			},
		})
		tx.Update("debit", types.Update{
			TableName: &table, Key: map[string]types.AttributeValue{"id": str(e.Headers[accountHeader])},
			UpdateExpression: aws.String("SET balance = balance - :amount"), ConditionExpression: aws.String("balance >= :amount"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":amount": number(129950)},
		})
		return created, nil
	}
}

// openAccounts creates the accounts, each with more money than is ever debited.
func openAccounts(ctx context.Context, client *dynamodb.Client, table string) error {
	for i := range accounts {
		if _, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{
			"id": str(accountOf(i)), "balance": number(1e15),
		}}); err != nil {
			return err
		}
	}
	return nil
}

func optimistically(o *lambdaidem.Options) { o.Optimistic = true }

// cached enables a cache that keeps the answers of all records during the whole measurement.
func cached(o *lambdaidem.Options) {
	o.Cache = lambdaidem.CacheOptions{Entries: 2 * records, MaxAge: time.Hour}
}

// debit returns a request that debits the account.
func (r *rig) debit(key string, account int) events.APIGatewayV2HTTPRequest {
	e := request(key, r.body)
	e.Headers[accountHeader] = accountOf(account)
	return e
}
