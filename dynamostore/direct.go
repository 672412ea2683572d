package dynamostore

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/internal/lowlevel"
)

// direct is the transport that goes by the SDK's middleware. It makes the first
// attempt of a call itself. If that ends in success, or in a refusal by the
// condition, the call is over. Anything else it hands over to the SDK's client,
// which takes it for the outcome of its own first attempt, and goes on: there is
// one retry loop, one retry quota, one reading of errors.
type direct struct {
	sdk     *dynamodb.Client
	line    *line
	options dynamodb.Options // of the SDK's client
	timeout time.Duration    // of an attempt

	rehearsal sync.Once
	head      head  // of every request
	unfit     error // why the SDK serves all the same

	single, several remembered // endpoints, by the kind of request
	trace           traces
}

func newDirect(sdk *dynamodb.Client, timeout time.Duration) *direct {
	d := &direct{sdk: sdk, options: sdk.Options(), timeout: timeout}
	d.line, _ = d.options.HTTPClient.(*line)
	return d
}

// ready returns why the transport can't be used.
func (d *direct) ready() error {
	d.rehearsal.Do(func() { d.unfit = d.rehearse() })
	return d.unfit
}

// PutItem is one conditional write, or that of a part.
func (d *direct) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	a := &attempt{}
	if a.write(func(b []byte) ([]byte, bool) { return lowlevel.AppendPutItem(b, in) }) && d.send(ctx, "PutItem", tableOf(in.TableName), a) {
		switch {
		case a.status == http.StatusOK && lowlevel.Empty(a.body):
			return &dynamodb.PutItemOutput{}, d.succeeded(ctx)
		case a.status == http.StatusBadRequest:
			if refused := a.refusal(); refused != nil {
				return nil, refused
			}
		}
	}
	defer a.handOver(ctx)()
	return d.sdk.PutItem(ctx, in) //nolint:wrapcheck // the SDK's error is what the store reads
}

// UpdateItem is one conditional write.
func (d *direct) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	a := &attempt{}
	if a.write(func(b []byte) ([]byte, bool) { return lowlevel.AppendUpdateItem(b, in) }) && d.send(ctx, "UpdateItem", tableOf(in.TableName), a) {
		switch a.status {
		case http.StatusOK:
			if item, ok := lowlevel.Item(a.body, lowlevel.MemberAttributes); ok {
				return &dynamodb.UpdateItemOutput{Attributes: item}, d.succeeded(ctx)
			}
		case http.StatusBadRequest:
			if refused := a.refusal(); refused != nil {
				return nil, refused
			}
		}
	}
	defer a.handOver(ctx)()
	return d.sdk.UpdateItem(ctx, in) //nolint:wrapcheck // the SDK's error is what the store reads
}

// GetItem is one read.
func (d *direct) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	a := &attempt{}
	if a.write(func(b []byte) ([]byte, bool) { return lowlevel.AppendGetItem(b, in) }) && d.send(ctx, "GetItem", tableOf(in.TableName), a) && a.status == http.StatusOK {
		if item, ok := lowlevel.Item(a.body, lowlevel.MemberItem); ok {
			return &dynamodb.GetItemOutput{Item: item}, d.succeeded(ctx)
		}
	}
	defer a.handOver(ctx)()
	return d.sdk.GetItem(ctx, in) //nolint:wrapcheck // the SDK's error is what the store reads
}

// TransactWriteItems is a transaction. The bytes are those of the transaction's
// first call, every time (E1).
func (d *direct) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (
	*dynamodb.TransactWriteItemsOutput, error,
) {
	a := &attempt{}
	if v := verdictOf(ctx); v != nil {
		a.bytes = v.bytes
	}
	tables, plain := tablesOf(in)
	if plain && a.write(func(b []byte) ([]byte, bool) { return lowlevel.AppendTransactWriteItems(b, in) }) && d.send(ctx, "TransactWriteItems", tables, a) &&
		a.status == http.StatusOK && lowlevel.Empty(a.body) {
		return &dynamodb.TransactWriteItemsOutput{}, d.succeeded(ctx)
	}
	defer a.handOver(ctx)()
	return d.sdk.TransactWriteItems(ctx, in) //nolint:wrapcheck // the SDK's error is what the store reads
}

// succeeded pays into the retry quota, as the SDK does for a call that succeeded at
// its first attempt. Refusals earn nothing there, nor here.
func (d *direct) succeeded(ctx context.Context) error {
	if quota, ok := d.options.Retryer.(aws.RetryerV2); ok {
		if release, err := quota.GetAttemptToken(ctx); err == nil {
			_ = release(nil) // a quota that is full says nothing
		}
	}
	return nil
}

// refusal is the error of a write whose condition does not hold; nil: the answer is
// another error, or says it in another way.
func (a *attempt) refusal() error {
	if a.header.Get("X-Amzn-Errortype") != "" {
		return nil
	}
	message, item, ok := lowlevel.Refusal(a.body)
	if !ok {
		return nil
	}
	return &types.ConditionalCheckFailedException{Message: &message, Item: item}
}

// tablesOf are the tables of a transaction. It reports false if one is given by its
// ARN, which decides over the endpoint.
func tablesOf(in *dynamodb.TransactWriteItemsInput) (tables requested, plain bool) {
	tables.list = make([]string, 0, len(in.TransactItems))
	for i := range in.TransactItems {
		var table *string
		switch item := &in.TransactItems[i]; {
		case item.Put != nil:
			table = item.Put.TableName
		case item.Update != nil:
			table = item.Update.TableName
		case item.Delete != nil:
			table = item.Delete.TableName
		case item.ConditionCheck != nil:
			table = item.ConditionCheck.TableName
		}
		if table == nil || strings.HasPrefix(*table, "arn:") {
			return requested{}, false
		}
		tables.list = append(tables.list, *table)
	}
	return tables, true
}
