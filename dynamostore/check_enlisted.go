package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// checkEnlisted finds what keeps writes to a table from being enlisted: that it is
// not there, has no transactions, or that the credentials allow no action on
// it. Which actions a function needs isn't known here, so those that are not
// allowed are warnings as long as one is.
func (s *Store) checkEnlisted(ctx context.Context, table string) TableProblems {
	out, err := s.wire.SDK().DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(table)})
	if err != nil {
		return TableProblems{failedCheck(s.wire.SDK(), table, "dynamodb:DescribeTable", err)}
	}
	problems := append(checkStatus(table, out.Table), checkTransactions(table, out.Table)...)
	if len(problems) > 0 {
		return problems
	}
	refused := map[string]error{}
	actions := probes(table, out.Table)
	for action, probe := range actions {
		if err := s.probe(ctx, probe); err != nil {
			refused[action] = err
		}
	}
	for _, action := range slices.Sorted(maps.Keys(refused)) {
		p := failedCheck(s.wire.SDK(), table, action, refused[action])
		p.Warning = p.Code == NoPermission && len(refused) < len(actions)
		problems = append(problems, p)
	}
	return problems
}

// checkTransactions refuses a table that has no transactions.
func checkTransactions(table string, d *types.TableDescription) TableProblems {
	if d.MultiRegionConsistency != types.MultiRegionConsistencyStrong {
		return nil
	}
	return TableProblems{{Code: NoTransactions, Detail: fmt.Sprintf(
		"table %q has multi-Region strong consistency, and so no transactions: no write can be enlisted with it; "+
			"use a table of one Region, or one with eventual consistency", table)}}
}

// probe sends a transaction of one action, whose condition never holds. It returns
// why DynamoDB would not have let it in.
func (s *Store) probe(ctx context.Context, action types.TransactWriteItem) error {
	_, err := s.wire.SDK().TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{action}})
	if cancelled := (*types.TransactionCanceledException)(nil); err == nil || errors.As(err, &cancelled) {
		return nil
	}
	return err
}

// probes returns the actions of a transaction, by their names in a policy, on an item
// of that table that is never there.
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

// checkRecordsTransact finds what keeps the record itself from being completed in
// a transaction.
func (s *Store) checkRecordsTransact(ctx context.Context) TableProblems {
	err := s.probe(ctx, types.TransactWriteItem{Update: &types.Update{
		TableName: aws.String(s.table), Key: s.key(probeID), UpdateExpression: aws.String("SET #probe = #id"),
		ConditionExpression: aws.String(s.writes.probe.condition), ExpressionAttributeNames: withProbe(s.writes.probe.names),
	}})
	if err == nil || reasonOf(err) == lambdaidem.ReasonInvalid { // a table with another key refuses it so, once it has let it in
		return nil
	}
	return TableProblems{failedCheck(s.wire.SDK(), s.table, "TransactWriteItems with dynamodb:UpdateItem", err)}
}
