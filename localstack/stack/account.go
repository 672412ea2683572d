package stack

import (
	"context"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// OpenAccount writes an account of a user (see [Token]) with a balance in minor units of the
// currency, such as cents. It replaces an existing account. The functions themselves only move
// money and open no accounts.
func (s *Stack) OpenAccount(ctx context.Context, user, currency string, balance int64) error {
	_, err := s.database.Client().PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String(s.Table("AccountsTable")),
		Item: map[string]types.AttributeValue{
			"id":      &types.AttributeValueMemberS{Value: currency + " " + Issuer + " " + user},
			"balance": &types.AttributeValueMemberN{Value: strconv.FormatInt(balance, 10)},
		},
	})
	if err != nil {
		return fmt.Errorf("open an account in %s for %s: %w", currency, user, err)
	}
	return nil
}
