package simulator

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore"
)

// This file has what handlers enlist: a transfer from an account to the shop's account, on the
// condition that the balance suffices, and an item that records the payment. Accounts and payments
// are in one table.

// enlist enlists the run's transfer. An idle run enlists nothing.
func (a *actor) enlist(ctx context.Context, r *run) {
	e := &a.w.plan.effects
	idle, whenFailed := a.rng.Float64() < e.idle, a.rng.Float64() < e.whenFailed
	verdict := e.verdicts[a.rng.IntN(len(e.verdicts))]
	if idle {
		return
	}
	a.w.journal.enlisted(r, whenFailed, verdict)
	tx := dynamostore.Enlist(ctx)
	if whenFailed {
		tx.AlsoWhenFailed()
	}
	cents := map[string]types.AttributeValue{":price": &types.AttributeValueMemberN{Value: fmt.Sprint(price)}}
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	key := func(id string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{"id": text(id)}
	}
	tx.Update("debit", types.Update{TableName: aws.String(accounts), Key: key(e.account(a.order)), ExpressionAttributeValues: cents,
		UpdateExpression: aws.String("SET cents = cents - :price"), ConditionExpression: aws.String("cents >= :price")}).
		ElseFunc(func(*dynamostore.ConditionFailed) error { return a.w.journal.conditionFailed(r) })
	tx.Update("credit", types.Update{TableName: aws.String(accounts), Key: key(shop), ExpressionAttributeValues: cents,
		UpdateExpression: aws.String("SET cents = cents + :price")})
	tx.Put("payment", types.Put{TableName: aws.String(accounts), Item: map[string]types.AttributeValue{
		"id": text(fmt.Sprintf("%s%d", payment, a.id)), "record": text(r.record),
	}})
}
