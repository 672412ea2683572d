package dynamostore

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
)

// validate returns a WriteError if DynamoDB would refuse the write whatever the table contains, for
// example because an expression is invalid or a key is missing. validate sends the write to an
// in-process fake of DynamoDB without tables. The fake checks the write first, so a
// ResourceNotFoundException means that the write is valid.
func (w *Write) validate() error {
	client := dynamodb.New(dynamodb.Options{
		Region:      "us-east-1",
		Credentials: aws.AnonymousCredentials{},
		HTTPClient:  &memdynamo.Client{DB: memdynamo.New(time.Now)},
		Retryer:     aws.NopRetryer{},
	})
	alone := *w
	alone.table = aws.String("no-such-table") // replaces the write's table, which may be an ARN
	_, err := client.TransactWriteItems(context.Background(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{alone.action()}})
	if _, missing := errors.AsType[*types.ResourceNotFoundException](err); missing {
		return nil
	}
	if refused, ok := errors.AsType[smithy.APIError](err); ok {
		err = errors.New(refused.ErrorMessage()) // drops the SDK's text about an HTTP request, because none was really sent
	}
	return &WriteError{Write: w.name, Err: err}
}
