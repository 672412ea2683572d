package dynamostore

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/internal/lowlevel"
)

// The names of operations in the API.
const (
	opPutItem    = "PutItem"
	opUpdateItem = "UpdateItem"
	opGetItem    = "GetItem"
	opTransact   = "TransactWriteItems"
)

// request is a request to DynamoDB. The direct transport sends the JSON from appendTo,
// and decodes the reply by read and refused. The SDK's transport calls through. Both
// send the same request.
type request interface {
	operation() string
	// tables returns the names of the tables that the request uses.
	tables() []string
	// appendTo appends the request as JSON. It returns false if it can't.
	appendTo(b []byte) ([]byte, bool)
	// read decodes the body of a successful reply. It returns false if it does not
	// understand the whole body.
	read(body string) (found, bool)
	// refused decodes the body of an error reply. If the reply says that the condition
	// failed, refused returns true and the error of the call. Otherwise it returns
	// false.
	refused(body string) (bool, error)
	// through sends the request by the SDK's client.
	through(context.Context, *dynamodb.Client) (found, error)
}

// found is the item in a reply. At most one field is set; neither is if the reply has no
// item.
type found struct {
	record *item      // the item, if it is known to be a record
	attrs  attributes // the item otherwise
}

// none reports whether the reply has no item.
func (f found) none() bool { return f.record == nil && len(f.attrs) == 0 }

// refusedError is the direct transport's error for a write whose condition failed, like
// the SDK's ConditionalCheckFailedException.
type refusedError struct{ found found }

func (*refusedError) Error() string { return "the condition does not hold" }

// lockRequest is the conditional PutItem that locks a record.
type lockRequest struct {
	store *Store
	item  *item
	given given
}

func (r *lockRequest) operation() string { return opPutItem }
func (r *lockRequest) tables() []string  { return []string{r.store.table} }

func (r *lockRequest) input() *dynamodb.PutItemInput {
	w := &r.store.writes.lock
	return &dynamodb.PutItemInput{
		TableName:                           aws.String(r.store.table),
		Item:                                r.store.layout.attributes(r.item),
		ConditionExpression:                 aws.String(w.condition),
		ExpressionAttributeNames:            w.names,
		ExpressionAttributeValues:           r.given.attributes(),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

func (r *lockRequest) appendTo(b []byte) ([]byte, bool) {
	b = append(b, r.store.writes.lock.head...)
	b = r.store.layout.appendItem(append(b, `,"Item":`...), r.item)
	b = r.given.appendTo(append(b, `,"ExpressionAttributeValues":{`...))
	return append(b, "}}"...), true
}

func (r *lockRequest) read(body string) (found, bool) { return found{}, lowlevel.Empty(body) }

func (r *lockRequest) refused(body string) (bool, error) { return r.store.layout.refused(body) }

func (r *lockRequest) through(ctx context.Context, client *dynamodb.Client) (found, error) {
	_, err := client.PutItem(ctx, r.input())
	return found{}, err //nolint:wrapcheck // the store reads it
}

// updateRequest is a conditional UpdateItem of a record. It sets the attributes in
// write.sets to their values in item, and removes those that item does not have.
type updateRequest struct {
	store *Store
	write *write
	item  *item
	given given
}

func (r *updateRequest) operation() string { return opUpdateItem }
func (r *updateRequest) tables() []string  { return []string{r.store.table} }

func (r *updateRequest) input() *dynamodb.UpdateItemInput {
	w, l, values := r.write, r.store.layout, r.given.attributes()
	return &dynamodb.UpdateItemInput{
		TableName:                           aws.String(r.store.table),
		Key:                                 r.store.key(r.item.ID),
		UpdateExpression:                    aws.String(l.expression(w.sets, r.item, values)),
		ConditionExpression:                 aws.String(w.condition),
		ExpressionAttributeNames:            w.names,
		ExpressionAttributeValues:           values,
		ReturnValues:                        w.returns,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

func (r *updateRequest) appendTo(b []byte) ([]byte, bool) {
	w, l := r.write, r.store.layout
	b = append(b, w.head...)
	b = l.appendKey(append(b, `,"Key":`...), r.item.ID)
	b = append(b, `,"UpdateExpression":"`...)
	b = l.appendExpression(b, w.sets, r.item)
	b = r.given.appendTo(append(b, `","ExpressionAttributeValues":{`...))
	b = l.appendValues(b, w.sets, r.item)
	return append(b, "}}"...), true
}

func (r *updateRequest) read(body string) (found, bool) {
	return r.store.layout.read(func(take taker) (bool, bool) { return lowlevel.Item(body, "Attributes", take) })
}

func (r *updateRequest) refused(body string) (bool, error) { return r.store.layout.refused(body) }

func (r *updateRequest) through(ctx context.Context, client *dynamodb.Client) (found, error) {
	out, err := client.UpdateItem(ctx, r.input())
	if err != nil {
		return found{}, err //nolint:wrapcheck // the store reads it
	}
	return found{attrs: out.Attributes}, nil
}

// getRequest is a consistent read.
type getRequest struct {
	store *Store
	id    string
	part  bool // the item is a part of an answer, and not a record
}

func (r *getRequest) operation() string { return opGetItem }
func (r *getRequest) tables() []string  { return []string{r.store.table} }

func (r *getRequest) input() *dynamodb.GetItemInput {
	return &dynamodb.GetItemInput{TableName: aws.String(r.store.table), Key: r.store.key(r.id), ConsistentRead: aws.Bool(true)}
}

func (r *getRequest) appendTo(b []byte) ([]byte, bool) {
	b = lowlevel.AppendString(append(b, `{"TableName":`...), r.store.table)
	b = r.store.layout.appendKey(append(b, `,"Key":`...), r.id)
	return append(b, `,"ConsistentRead":true}`...), true
}

func (r *getRequest) read(body string) (found, bool) {
	if r.part {
		attrs := attributes{}
		_, ok := lowlevel.Item(body, "Item", lowlevel.Into(attrs))
		return found{attrs: attrs}, ok
	}
	return r.store.layout.read(func(take taker) (bool, bool) { return lowlevel.Item(body, "Item", take) })
}

func (r *getRequest) refused(string) (bool, error) { return false, nil }

func (r *getRequest) through(ctx context.Context, client *dynamodb.Client) (found, error) {
	out, err := client.GetItem(ctx, r.input())
	if err != nil {
		return found{}, err //nolint:wrapcheck // the store reads it
	}
	return found{attrs: out.Item}, nil
}

// partRequest is the PutItem of a part of an answer. It has no condition, because the
// key of a part depends on its content.
type partRequest struct {
	store *Store
	attrs attributes
}

func (r *partRequest) operation() string { return opPutItem }
func (r *partRequest) tables() []string  { return []string{r.store.table} }

func (r *partRequest) appendTo(b []byte) ([]byte, bool) {
	b = lowlevel.AppendString(append(b, `{"TableName":`...), r.store.table)
	b, ok := lowlevel.AppendAttributes(append(b, `,"Item":`...), r.attrs)
	return append(b, '}'), ok
}

func (r *partRequest) read(body string) (found, bool) { return found{}, lowlevel.Empty(body) }

func (r *partRequest) refused(string) (bool, error) { return false, nil }

func (r *partRequest) through(ctx context.Context, client *dynamodb.Client) (found, error) {
	_, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(r.store.table), Item: r.attrs})
	return found{}, err //nolint:wrapcheck // the store reads it
}

// transactRequest is a transaction.
type transactRequest struct {
	input  *dynamodb.TransactWriteItemsInput
	record bool // the first action is on the record
}

func (r *transactRequest) operation() string { return opTransact }

func (r *transactRequest) tables() []string {
	tables := make([]string, len(r.input.TransactItems))
	for i := range tables {
		tables[i] = tableOf(&r.input.TransactItems[i])
	}
	return tables
}

// plain reports whether all tables are given by name and not by ARN.
func (r *transactRequest) plain() bool {
	for i := range r.input.TransactItems {
		table := tableOf(&r.input.TransactItems[i])
		if table == "" || strings.HasPrefix(table, "arn:") {
			return false
		}
	}
	return true
}

func tableOf(item *types.TransactWriteItem) string {
	switch {
	case item.Put != nil:
		return aws.ToString(item.Put.TableName)
	case item.Update != nil:
		return aws.ToString(item.Update.TableName)
	case item.Delete != nil:
		return aws.ToString(item.Delete.TableName)
	case item.ConditionCheck != nil:
		return aws.ToString(item.ConditionCheck.TableName)
	}
	return ""
}

func (r *transactRequest) appendTo(b []byte) ([]byte, bool) {
	return lowlevel.AppendTransactWriteItems(b, r.input)
}

func (r *transactRequest) read(body string) (found, bool) { return found{}, lowlevel.Empty(body) }

// refused returns true if the record's condition failed, as it does for a duplicate,
// because then no other reason matters. The SDK decodes all other error replies.
func (r *transactRequest) refused(body string) (bool, error) {
	cancelled, ok := lowlevel.Cancellation(body)
	if !ok || !r.record || len(cancelled.CancellationReasons) != len(r.input.TransactItems) {
		return false, nil
	}
	return aws.ToString(cancelled.CancellationReasons[0].Code) == cancelCondition, cancelled
}

func (r *transactRequest) through(ctx context.Context, client *dynamodb.Client) (found, error) {
	_, err := client.TransactWriteItems(ctx, r.input)
	return found{}, err //nolint:wrapcheck // the store reads it
}
