package dynamostore

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// checkPermissions calls each action that the store needs, without writing anything. It returns a
// problem for each action that fails. If an action gets no reply, checkPermissions skips the
// remaining ones.
func (s *Store) checkPermissions(ctx context.Context) TableProblems {
	var problems TableProblems
	tried := func(action string, err error) {
		refused := (*types.ConditionalCheckFailedException)(nil)
		// DynamoDB checks permissions first, and the key and the condition afterwards. So an error
		// about the key or the condition shows that the action is allowed.
		if err == nil || errors.As(err, &refused) || reasonOf(err) == lambdaidem.ReasonInvalid {
			return
		}
		problems = append(problems, failedCheck(s.wire.SDK(), s.table, action, err))
	}
	_, err := s.wire.SDK().GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(s.table), Key: s.key(probeID), ConsistentRead: aws.Bool(true),
	})
	tried("dynamodb:GetItem", err)
	if problems.noReply() {
		return problems
	}
	_, err = s.wire.SDK().PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String(s.table), Item: s.key(probeID),
		ConditionExpression: aws.String(s.writes.probe.condition), ExpressionAttributeNames: s.writes.probe.names,
	})
	tried("dynamodb:PutItem", err)
	if problems.noReply() {
		return problems
	}
	_, err = s.wire.SDK().UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String(s.table), Key: s.key(probeID),
		ConditionExpression: aws.String(s.writes.probe.condition), ExpressionAttributeNames: s.writes.probe.names,
	})
	tried("dynamodb:UpdateItem", err)
	return problems
}

// probeID is the key of an item that does not exist. The id of a record ends in a hash, so no
// record has this id.
const probeID = "lambdaidem#table-check"
