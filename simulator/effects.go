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

// What handlers enlist (E1): a transfer from an account to the shop's, if the
// account holds as much, with a line in the books. Accounts and books are one
// table.

const (
	accounts = "accounts"
	shop     = "account#shop"
	rich     = "account#rich"
	poor     = "account#poor"
	price    = 10 // cents, of every transfer
	wealth   = 1_000_000
	payment  = "payment#" // begins the id of a line in the books
)

// effects is what a plan says of them. The zero value: there are none.
type effects struct {
	enlist     bool
	optimistic float64         // how many attempts run optimistically (E4)
	unguarded  float64         // how many requests run unguarded (K3, K4)
	poor       map[string]bool // keys whose requests are paid from the poor account
	cents      int             // in the poor account, at first
	deposits   bool            // it gets some more now and then
	whenFailed float64         // how many runs have them made with a failed answer too
	outside    float64         // how many runs have an outside effect beside
	idle       float64         // how many runs enlist nothing
	verdicts   []Ending        // what becomes of runs whose condition fails
	lateBy     time.Duration   // how late a late transaction is at most
	faults     []Fault
}

// newEffects decides what the handlers of a plan enlist. It draws from a random stream
// of its own, so that the rest of each plan does not depend on it.
func newEffects(seed uint64, p *plan) {
	r := rand.New(rand.NewPCG(seed, 0xe44ec75))
	chance := func(c float64) bool { return r.Float64() < c }
	e := effects{enlist: true, cents: 5 + 10*r.IntN(2), poor: map[string]bool{"k0": chance(0.5), "k1": chance(0.5), "": chance(0.3)}, lateBy: 20 * time.Second}
	switch kind := r.Float64(); {
	case kind < 1./3:
		if chance(0.2) { // with what it takes to fail open
			p.failOpen, p.rate = true, 0.4
			p.faults = append(p.faults, Throttled, FailBefore)
		}
	case kind < 1./2:
		e.optimistic = 1
		if chance(0.4) { // two releases of a function serve one table
			e.optimistic = 0.5
		}
	default:
		if chance(0.1) { // what only a verdict over all attempts on the wire can tell (X8)
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

// account returns where an order is paid from.
func (e *effects) account(o order) string {
	if e.poor[o.Key] {
		return poor
	}
	return rich
}

// openAccounts makes the table of the accounts: one in each Region, with money of
// its own.
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

// deposit puts money into the poor account.
func (w *world) deposit(cents int) {
	w.journal.note(nil, "%d cents are deposited in %s", cents, poor)
	w.journal.funds += int64(cents * len(w.dbs))
	w.mustServe("UpdateItem", fmt.Sprintf(`{"TableName":%q,"Key":{"id":{"S":%q}},"UpdateExpression":"SET cents = cents + :more","ExpressionAttributeValues":{":more":{"N":"%d"}}}`, accounts, poor, cents))
}

// deposits lets money come in, now and then.
func (w *world) deposits() {
	w.afterFunc(w.plan.paced(w.randomMillis(8_000)), func() {
		if !w.isHealed() {
			w.deposit(price)
			w.deposits()
		}
	})
}

// enlist hands the run's transfer over, or nothing if it is idle.
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

// balances returns what all accounts hold, and what the one that holds least does.
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
