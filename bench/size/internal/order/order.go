// Package order has the handler of the two Lambda functions that bench/size compares.
package order

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Handler returns a handler that places an order: a conditional PutItem, then an UpdateItem.
func Handler(client *dynamodb.Client, table string) func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	return func(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		var order struct {
			ID    string `json:"id"`
			Total string `json:"total"`
		}
		if err := json.Unmarshal([]byte(e.Body), &order); err != nil {
			return events.APIGatewayV2HTTPResponse{}, err
		}
		id := &types.AttributeValueMemberS{Value: order.ID}
		_, err := client.PutItem(ctx, &dynamodb.PutItemInput{
			TableName:           aws.String(table),
			Item:                map[string]types.AttributeValue{"id": id, "total": &types.AttributeValueMemberN{Value: order.Total}},
			ConditionExpression: aws.String("attribute_not_exists(id)"),
		})
		if exists := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &exists) {
			return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusConflict}, nil
		}
		if err != nil {
			return events.APIGatewayV2HTTPResponse{}, err
		}
		_, err = client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName:                 aws.String(table),
			Key:                       map[string]types.AttributeValue{"id": id},
			UpdateExpression:          aws.String("SET placed = :true"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":true": &types.AttributeValueMemberBOOL{Value: true}},
		})
		if err != nil {
			return events.APIGatewayV2HTTPResponse{}, err
		}
		return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusCreated, Body: e.Body}, nil
	}
}
