package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// floor is the least code that one could write by hand: it sends the recorded requests of
// dynamostore with an unmodified client of the SDK. It relies on its caller for the key, scope and
// fingerprint, and handles no failures.
type floor struct {
	client         *dynamodb.Client
	lock, complete *recorded
	claim, commit  *recorded // transactions: without a lock, and after one
}

// found has attributes of the record that has caused a lock to be refused.
type found struct {
	status, validation, data string
}

// put sends the lock. It returns the existing record if the lock is refused, and nil if the lock is
// acquired.
func (f *floor) put(ctx context.Context, id, token string, leaseEnd time.Time) (*found, error) {
	now := time.Now()
	_, err := f.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String(f.lock.TableName),
		Item: f.lock.Item.with(values{
			"id":                     str(id),
			"token":                  str(token),
			"started_at":             number(now.UnixMilli()),
			"in_progress_expiration": number(leaseEnd.UnixMilli()),
			"expiration":             number(now.Add(24 * time.Hour).Unix()),
		}),
		ConditionExpression:                 f.lock.ConditionExpression,
		ExpressionAttributeNames:            f.lock.ExpressionAttributeNames,
		ExpressionAttributeValues:           f.lock.ExpressionAttributeValues.with(values{":now_s": number(now.Unix()), ":now_ms": number(now.UnixMilli())}),
		ReturnValues:                        f.lock.ReturnValues,
		ReturnValuesOnConditionCheckFailure: f.lock.ReturnValuesOnConditionCheckFailure,
	})
	if refused := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &refused) {
		return &found{text(refused.Item["status"]), text(refused.Item["validation"]), text(refused.Item["data"])}, nil
	}
	return nil, err
}

// update sends the completion.
func (f *floor) update(ctx context.Context, id, token string) error {
	now := time.Now()
	_, err := f.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                aws.String(f.complete.TableName),
		Key:                      f.complete.Key.with(values{"id": str(id)}),
		ConditionExpression:      f.complete.ConditionExpression,
		UpdateExpression:         f.complete.UpdateExpression,
		ExpressionAttributeNames: f.complete.ExpressionAttributeNames,
		ExpressionAttributeValues: f.complete.ExpressionAttributeValues.with(values{
			":token":        str(token),
			":completed_at": number(now.UnixMilli()),
			":expiration":   number(now.Add(24 * time.Hour).Unix()),
			":now_s":        number(now.Unix()),
			":now_ms":       number(now.UnixMilli()),
		}),
		ReturnValues:                        f.complete.ReturnValues,
		ReturnValuesOnConditionCheckFailure: f.complete.ReturnValuesOnConditionCheckFailure,
	})
	return err
}

// first sends a new request: the lock and the completion.
func (f *floor) first(ctx context.Context, id, token string, leaseEnd time.Time) error {
	was, err := f.put(ctx, id, token, leaseEnd)
	if err == nil && was != nil {
		err = fmt.Errorf("the record of a new request is there already: %+v", *was)
	}
	if err != nil {
		return err
	}
	return f.update(ctx, id, token)
}

// again sends a request whose record already has the given status. It returns an error if the
// record is not as expected.
func (f *floor) again(ctx context.Context, id, token string, leaseEnd time.Time, status string) error {
	was, err := f.put(ctx, id, token, leaseEnd)
	switch {
	case err != nil:
		return err
	case was == nil || was.status != status || was.validation != text(f.lock.Item["validation"]):
		return fmt.Errorf("the record is %+v; want it %s", was, status)
	case status == statusCompleted && was.data != text(f.complete.ExpressionAttributeValues[":data"]):
		return fmt.Errorf("the stored answer is %q", was.data)
	}
	return nil
}

func text(v types.AttributeValue) string {
	s, ok := v.(*types.AttributeValueMemberS)
	if !ok {
		return ""
	}
	return s.Value
}

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
