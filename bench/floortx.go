package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// transact sends a transaction with the record's action and the handler's two actions, which write
// a payment and debit an account. It returns the existing record if that has caused the transaction
// to be canceled, and nil if the transaction is committed.
func (f *floor) transact(ctx context.Context, of *recorded, id, token, account string) (*found, error) {
	now := time.Now()
	times := values{":token": str(token), ":now_s": number(now.Unix()), ":now_ms": number(now.UnixMilli())}
	ends := number(now.Add(24 * time.Hour).Unix())
	actions := make([]types.TransactWriteItem, len(of.TransactItems))
	for i, a := range of.TransactItems {
		switch {
		case i == 0 && a.Put != nil:
			actions[i].Put = a.Put.put(values{
				"id":                     str(id),
				"token":                  str(token),
				"started_at":             number(now.UnixMilli()),
				"completed_at":           number(now.UnixMilli()),
				"in_progress_expiration": number(now.UnixMilli()),
				"expiration":             ends,
			}, times)
		case i == 0:
			times[":completed_at"], times[":expiration"] = number(now.UnixMilli()), ends
			actions[i].Update = a.Update.update(values{"id": str(id)}, times)
		case a.Put != nil:
			actions[i].Put = a.Put.put(values{"id": str(paymentOf(id)), "account": str(account)}, nil)
		default:
			actions[i].Update = a.Update.update(values{"id": str(account)}, nil)
		}
	}
	_, err := f.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: actions, ClientRequestToken: aws.String(freshToken()),
	})
	cancelled := (*types.TransactionCanceledException)(nil)
	if !errors.As(err, &cancelled) || len(cancelled.CancellationReasons) != len(actions) {
		return nil, err
	}
	if item := cancelled.CancellationReasons[0].Item; item != nil {
		return &found{text(item["status"]), text(item["validation"]), text(item["data"])}, nil
	}
	return nil, err
}

func (r *recorded) put(item, condition values) *types.Put {
	return &types.Put{
		TableName: aws.String(r.TableName), Item: r.Item.with(item),
		ConditionExpression: r.ConditionExpression, ExpressionAttributeNames: r.ExpressionAttributeNames,
		ExpressionAttributeValues:           r.ExpressionAttributeValues.with(condition),
		ReturnValuesOnConditionCheckFailure: r.ReturnValuesOnConditionCheckFailure,
	}
}

func (r *recorded) update(key, replaced values) *types.Update {
	return &types.Update{
		TableName: aws.String(r.TableName), Key: r.Key.with(key), UpdateExpression: r.UpdateExpression,
		ConditionExpression: r.ConditionExpression, ExpressionAttributeNames: r.ExpressionAttributeNames,
		ExpressionAttributeValues:           r.ExpressionAttributeValues.with(replaced),
		ReturnValuesOnConditionCheckFailure: r.ReturnValuesOnConditionCheckFailure,
	}
}

// claimed sends a new request without a lock, as one transaction.
func (f *floor) claimed(ctx context.Context, id, token, account string) error {
	return f.happened(f.transact(ctx, f.claim, id, token, account))
}

// locked sends a new request with a lock, as a PutItem and a transaction.
func (f *floor) locked(ctx context.Context, id, token, account string, leaseEnd time.Time) error {
	was, err := f.put(ctx, id, token, leaseEnd)
	if err = f.happened(was, err); err != nil {
		return err
	}
	return f.happened(f.transact(ctx, f.commit, id, token, account))
}

// lost sends a request whose record is already completed, so that the transaction is canceled. It
// returns an error if the record is not as expected.
func (f *floor) lost(ctx context.Context, id, token, account string) error {
	was, err := f.transact(ctx, f.claim, id, token, account)
	switch record := f.claim.TransactItems[0].Put; {
	case err != nil:
		return err
	case was == nil || was.status != statusCompleted || was.validation != text(record.Item["validation"]) || was.data != text(record.Item["data"]):
		return fmt.Errorf("the record is %+v; want it completed, with the answer", was)
	}
	return nil
}

// happened returns err, or an error if the record of a new request already existed.
func (f *floor) happened(was *found, err error) error {
	if err == nil && was != nil {
		return fmt.Errorf("the record of a new request is there already: %+v", *was)
	}
	return err
}
