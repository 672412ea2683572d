// Command bare is a driver without a peer, with which the timings of the peers are compared. It locks
// a key with one call of the AWS SDK and completes it with another, and does nothing else.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/bench/peers/driver"
)

func main() {
	if err := run(context.Background(), driver.ReadSettings()); err != nil {
		fmt.Fprintln(os.Stderr, "bare:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s driver.Settings) error {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	table := records{dynamodb.NewFromConfig(cfg), s.Table}
	return driver.Serve(time.Now, func(ctx context.Context, c *driver.Call) driver.Answer {
		answer, err := table.serve(ctx, c)
		if err != nil {
			return driver.Answer{Error: err.Error()}
		}
		return answer
	})
}

// records is the table of the records.
type records struct {
	client *dynamodb.Client
	table  string
}

const (
	inProgress = "INPROGRESS"
	completed  = "COMPLETED"
)

// serve locks the key, runs the handler and stores its answer.
func (t records) serve(ctx context.Context, c *driver.Call) (driver.Answer, error) {
	key := &types.AttributeValueMemberS{Value: c.Request.Caller + " " + c.Request.Path + " " + c.Request.Key}
	_, err := t.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String(t.table),
		Item: map[string]types.AttributeValue{
			"id": key, "status": &types.AttributeValueMemberS{Value: inProgress},
			"expiration": &types.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().Add(24*time.Hour).Unix(), 10)},
		},
		ConditionExpression:                 aws.String("attribute_not_exists(id)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if refused := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &refused) {
		return stored(refused.Item), nil
	}
	if err != nil {
		return driver.Answer{}, err
	}
	if err := c.Run(nil); err != nil {
		return driver.Answer{}, err
	}
	_, err = t.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String(t.table), Key: map[string]types.AttributeValue{"id": key},
		UpdateExpression:         aws.String("SET #status = :completed, #data = :data"),
		ExpressionAttributeNames: map[string]string{"#status": "status", "#data": "data"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":completed": &types.AttributeValueMemberS{Value: completed},
			":data":      &types.AttributeValueMemberB{Value: c.Script.Body},
		},
	})
	return driver.Answer{Status: c.Script.Status, Location: driver.Location, Body: c.Script.Body}, err
}

// stored returns the answer in an item, or a refusal if the item has no answer yet.
func stored(item map[string]types.AttributeValue) driver.Answer {
	data, ok := item["data"].(*types.AttributeValueMemberB)
	if !ok {
		return driver.Answer{Status: 409, Body: []byte(`{"code":"in_progress"}`)}
	}
	return driver.Answer{Status: 201, Location: driver.Location, Body: data.Value}
}
