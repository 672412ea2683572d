package dynamostore

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	fakewire "github.com/lambdaidem/toolkit/internal/simulator/wire"
)

// validate reports what DynamoDB would refuse about a write by itself: a faulty
// expression, a placeholder that is undefined or unused, a missing key or value. It
// asks an in-process DynamoDB without tables, which judges all of that before it
// misses the table.
func (w *Write) validate() error {
	client := dynamodb.New(dynamodb.Options{
		Region:      "us-east-1",
		Credentials: aws.AnonymousCredentials{},
		HTTPClient:  &fakewire.Client{DB: fakewire.New(time.Now)},
		Retryer:     aws.NopRetryer{},
	})
	alone := *w
	alone.table = aws.String("no-such-table") // the write's own may be an ARN
	_, err := client.TransactWriteItems(context.Background(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{alone.action()}})
	if _, missing := errors.AsType[*types.ResourceNotFoundException](err); missing {
		return nil
	}
	if refused, ok := errors.AsType[smithy.APIError](err); ok {
		err = errors.New(refused.ErrorMessage()) // without the request that was never sent
	}
	return &WriteError{Write: w.name, Err: err}
}
