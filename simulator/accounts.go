package simulator

import (
	"fmt"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
)

const (
	accounts = "accounts"
	shop     = "account#shop"
	rich     = "account#rich"
	poor     = "account#poor"
	price    = 10 // cents, of every transfer
	wealth   = 1_000_000
	payment  = "payment#" // the prefix of the IDs of payments
)

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
