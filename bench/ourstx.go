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

// A handler that writes: a payment, and an account's new balance.

// accounts is how many there are: more than one block of operations debits, so
// that no two transactions at once meet on one.
const accounts = 4 * maxAtOnce

// accountHeader says which account a request is about. Headers are no part of the
// fingerprint, so every request has the same.
const accountHeader = "x-account"

func accountOf(i int) string { return fmt.Sprintf("account/%04d", i%accounts) }

func paymentOf(record string) string { return "payment/" + record }

// payFrom returns the user's handler, on a table.
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

// openAccounts makes the accounts, with more than is ever debited.
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

// cached keeps the answers of all records for as long as it is measured.
func cached(o *lambdaidem.Options) {
	o.Cache = lambdaidem.CacheOptions{Entries: 2 * records, MaxAge: time.Hour}
}

// debit returns a request that debits an account.
func (r *rig) debit(key string, account int) events.APIGatewayV2HTTPRequest {
	e := request(key, r.body)
	e.Headers[accountHeader] = accountOf(account)
	return e
}
