package simulator

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/internal/memdynamo"
)

// This file has what handlers enlist: a transfer from an account to the shop's account, on the
// condition that the balance suffices, and an item that records the payment. Accounts and payments
// are in one table.

const (
	accounts = "accounts"
	shop     = "account#shop"
	rich     = "account#rich"
	poor     = "account#poor"
	price    = 10 // cents, of every transfer
	wealth   = 1_000_000
	payment  = "payment#" // the prefix of the IDs of payments
)

// effects has a plan's parameters for enlisted writes. The zero value means that handlers enlist
// nothing. The float64 fields are shares, from 0 to 1.
type effects struct {
	enlist     bool
	optimistic float64         // attempts that run optimistically
	unguarded  float64         // requests that run unguarded
	poor       map[string]bool // the keys whose requests are paid from the poor account
	cents      int             // the opening balance of the poor account
	deposits   bool            // money is paid into the poor account at random times
	whenFailed float64         // runs whose writes are committed with a failed answer too
	outside    float64         // runs that also have an effect outside of the transaction
	idle       float64         // runs that enlist nothing
	verdicts   []Ending        // the possible endings of runs whose condition fails
	lateBy     time.Duration   // the longest delay of a late transaction
	faults     []Fault         // the faults that only transactions meet
}

// newEffects decides what the handlers of a plan enlist. It draws from a random stream
// of its own, so that the rest of each plan does not depend on it.
func newEffects(seed uint64, p *plan) {
	r := rand.New(rand.NewPCG(seed, 0xe44ec75))
	chance := func(c float64) bool { return r.Float64() < c }
	e := effects{enlist: true, cents: 5 + 10*r.IntN(2), poor: map[string]bool{"k0": chance(0.5), "k1": chance(0.5), "": chance(0.3)}, lateBy: 20 * time.Second}
	switch kind := r.Float64(); {
	case kind < 1./3:
		if chance(0.2) { // so many errors that attempts fail open
			p.failOpen, p.rate = true, 0.4
			p.faults = append(p.faults, Throttled, FailBefore)
		}
	case kind < 1./2:
		e.optimistic = 1
		if chance(0.4) { // two versions of a function use one table
			e.optimistic = 0.5
		}
	default:
		if chance(0.1) { // faults after which only all tries of a request together tell whether it was applied
			p.faults, p.rate = []Fault{ReplyLost, FailAfter, Throttled}, 0.5
		}
		return
	}
	e.deposits = chance(0.5)
	if chance(0.25) {
		e.unguarded = 0.3
	}
	if chance(0.25) {
		e.whenFailed = 0.7
	}
	e.outside, e.idle = 0.3, 0.1
	for range 1 + r.IntN(2) {
		e.verdicts = append(e.verdicts, conditionEndings[r.IntN(len(conditionEndings))].ending)
	}
	if chance(0.15) {
		e.lateBy = 20 * time.Minute
	}
	for range r.IntN(3) {
		e.faults = append(e.faults, transactionFaults[r.IntN(len(transactionFaults))])
	}
	if e.optimistic == 1 {
		p.policyHold, p.mixed, p.failOpen = false, false, false
	}
	p.effects = e
}

// account returns the account from which an order is paid.
func (e *effects) account(o order) string {
	if e.poor[o.Key] {
		return poor
	}
	return rich
}

// openAccounts creates the table of the accounts, and the accounts. Each Region has its own table
// and its own money.
func (w *world) openAccounts() {
	w.mustServe("CreateTable", createTable(accounts))
	open := func(id string, cents int) {
		w.journal.funds += int64(cents * len(w.dbs))
		w.mustServe("PutItem", fmt.Sprintf(`{"TableName":%q,"Item":{"id":{"S":%q},"cents":{"N":"%d"}}}`, accounts, id, cents))
	}
	open(rich, wealth)
	open(poor, w.plan.effects.cents)
	open(shop, 0)
}

// deposit pays money into the poor account.
func (w *world) deposit(cents int) {
	w.journal.note(nil, "%d cents are deposited in %s", cents, poor)
	w.journal.funds += int64(cents * len(w.dbs))
	w.mustServe("UpdateItem", fmt.Sprintf(`{"TableName":%q,"Key":{"id":{"S":%q}},"UpdateExpression":"SET cents = cents + :more","ExpressionAttributeValues":{":more":{"N":"%d"}}}`, accounts, poor, cents))
}

// deposits pays money into the poor account at random times.
func (w *world) deposits() {
	w.afterFunc(w.plan.paced(w.randomMillis(8_000)), func() {
		if !w.isHealed() {
			w.deposit(price)
			w.deposits()
		}
	})
}

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

// balances returns the sum of all balances, and the lowest balance or 0 if none is negative.
func (w *world) balances() (sum, least int64) {
	for _, db := range w.dbs {
		for _, id := range []string{rich, poor, shop} {
			item, _ := db.Item(accounts, memdynamo.Item{"id": memdynamo.String(id)})
			cents := number(item["cents"])
			sum, least = sum+cents, min(least, cents)
		}
	}
	return sum, least
}
