package main

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// units has the capacity units that one call with the finished record consumes, as DynamoDB Local
// reports them. A refused write consumes as much as a write (Amazon DynamoDB Developer Guide,
// "DynamoDB read and write operations").
type units struct{ write, read float64 }

// units reads the record of a storm, and writes a copy of it under another id.
func (l *lab) units(ctx context.Context, id string) (units, error) {
	client := l.database.Client()
	key := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}
	found, err := client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &l.table, Key: key, ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	if err != nil {
		return units{}, err
	}
	found.Item["id"] = &types.AttributeValueMemberS{Value: "copy" + id[4:]}
	written, err := client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &l.table, Item: found.Item, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	if err != nil {
		return units{}, err
	}
	return units{write: aws.ToFloat64(written.ConsumedCapacity.CapacityUnits), read: aws.ToFloat64(found.ConsumedCapacity.CapacityUnits)}, nil
}
