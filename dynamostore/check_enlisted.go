package dynamostore

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// checkEnlisted returns the problems with a table that handlers enlist writes to. The store does
// not know which actions the handlers need. A missing permission is therefore only a warning,
// unless every action fails.
func (s *Store) checkEnlisted(ctx context.Context, table string) TableProblems {
	out, err := s.wire.SDK().DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(table)})
	if err != nil {
		return TableProblems{failedCheck(s.wire.SDK(), table, "dynamodb:DescribeTable", err)}
	}
	problems := append(checkStatus(table, out.Table), checkTransactions(table, out.Table)...)
	if len(problems) > 0 {
		return problems
	}
	actions, tried := probes(table, out.Table), 0
	for _, action := range slices.Sorted(maps.Keys(actions)) {
		tried++
		if err := s.probe(ctx, actions[action]); err != nil {
			problems = append(problems, failedCheck(s.wire.SDK(), table, action, err))
		}
		if problems.noReply() {
			break
		}
	}
	for _, p := range problems {
		p.Warning = p.Code == NoPermission && len(problems) < tried
	}
	return problems
}

// probe checks whether the credentials allow an action. It sends a transaction with only this
// action, whose condition never holds, so nothing is written. If DynamoDB cancels the
// transaction, the credentials allow the action, and probe returns nil.
func (s *Store) probe(ctx context.Context, action types.TransactWriteItem) error {
	_, err := s.wire.SDK().TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{action}})
	if cancelled := (*types.TransactionCanceledException)(nil); err == nil || errors.As(err, &cancelled) {
		return nil
	}
	return err
}

// probes returns an action of each kind that a transaction can have. The keys of the map are the
// names of the IAM actions. The condition of each action never holds, so no action writes anything,
// even if the table has an item with the action's key.
func probes(table string, d *types.TableDescription) map[string]types.TransactWriteItem {
	key := attributes{}
	for _, k := range d.KeySchema {
		name := aws.ToString(k.AttributeName)
		switch attributeType(d, name) {
		case types.ScalarAttributeTypeN:
			key[name] = number(0)
		case types.ScalarAttributeTypeB:
			key[name] = &types.AttributeValueMemberB{Value: []byte(probeID)}
		default:
			key[name] = str(probeID)
		}
	}
	of, condition := aws.String(table), aws.String(neverTrue)
	names := map[string]string{"#id": aws.ToString(d.KeySchema[0].AttributeName)}
	return map[string]types.TransactWriteItem{
		"dynamodb:PutItem":            {Put: &types.Put{TableName: of, Item: key, ConditionExpression: condition, ExpressionAttributeNames: names}},
		"dynamodb:UpdateItem":         {Update: &types.Update{TableName: of, Key: key, UpdateExpression: aws.String("SET #probe = #id"), ConditionExpression: condition, ExpressionAttributeNames: withProbe(names)}},
		"dynamodb:DeleteItem":         {Delete: &types.Delete{TableName: of, Key: key, ConditionExpression: condition, ExpressionAttributeNames: names}},
		"dynamodb:ConditionCheckItem": {ConditionCheck: &types.ConditionCheck{TableName: of, Key: key, ConditionExpression: condition, ExpressionAttributeNames: names}},
	}
}

func withProbe(names map[string]string) map[string]string {
	names = maps.Clone(names)
	names["#probe"] = "lambdaidem_probe"
	return names
}

// checkRecordsTransact returns a problem if the store can't complete its records in a transaction,
// for example because the credentials don't allow it.
func (s *Store) checkRecordsTransact(ctx context.Context) TableProblems {
	err := s.probe(ctx, types.TransactWriteItem{Update: &types.Update{
		TableName: aws.String(s.table), Key: s.key(probeID), UpdateExpression: aws.String("SET #probe = #id"),
		ConditionExpression: aws.String(s.writes.probe.condition), ExpressionAttributeNames: withProbe(s.writes.probe.names),
	}})
	if err == nil || reasonOf(err) == lambdaidem.ReasonInvalid { // invalid: the action is allowed, but the table has another key
		return nil
	}
	return TableProblems{failedCheck(s.wire.SDK(), s.table, "TransactWriteItems with dynamodb:UpdateItem", err)}
}
