package window

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/localstack/stack"
)

// maxTallies is how many of the latest records are counted for.
const maxTallies = 1000

// tally counts what was done for one record.
type tally struct {
	record    string
	title     string   // see titleOf
	runs      int      // how often the handler ran
	movements []string // ids of the payments, refunds and transfers that attempts have tried to write
	account   string   // id of the account that the first of them changes
}

// tally returns the tally of the record of an exchange. The caller has w.mu.
func (w *Window) tally(x *exchange) *tally {
	for _, t := range slices.Backward(w.tallies) {
		if t.record == x.asked {
			return t
		}
	}
	t := &tally{record: x.asked, title: titleOf(x.request, w.controls.routes)}
	w.tallies = append(w.tallies, t)
	if len(w.tallies) > maxTallies {
		w.tallies = slices.Delete(w.tallies, 0, len(w.tallies)-maxTallies)
	}
	return t
}

// tries notes which movements of money a transaction writes, if the stack is this project's own.
// The caller has w.mu.
func (w *Window) tries(x *exchange, transaction []byte) {
	if w.stack == nil || !w.samples() || x.asked == "" {
		return
	}
	var request struct {
		TransactItems []struct{ Put, Update statement }
	}
	if json.Unmarshal(transaction, &request) != nil {
		return
	}
	t := w.tally(x)
	for _, item := range request.TransactItems {
		switch item.Put.TableName {
		case w.stack.Table("PaymentsTable"), w.stack.Table("TransfersTable"):
			if id := item.Put.Item.id(); !slices.Contains(t.movements, id) {
				t.movements = append(t.movements, id)
			}
		}
		if t.account == "" && item.Update.TableName == w.stack.Table("AccountsTable") {
			t.account = item.Update.Key.id()
		}
	}
}

// id returns the attribute id, or "".
func (a attributes) id() string {
	id, _ := a["id"].(*types.AttributeValueMemberS)
	if id == nil {
		return ""
	}
	return id.Value
}

// sumUp shows how often the handler ran for a record, and what became of the money: movements
// and the account are read from their tables.
func (w *Window) sumUp(ctx context.Context, record string) {
	w.summing.Lock() // so that no earlier sum is shown after a later one
	defer w.summing.Unlock()
	w.mu.Lock()
	i := slices.IndexFunc(w.tallies, func(t *tally) bool { return t.record == record })
	var t tally
	if i >= 0 {
		t = *w.tallies[i]
		t.movements = slices.Clone(t.movements)
	}
	w.mu.Unlock()
	if i < 0 || t.runs == 0 {
		w.update(func(c *controls) { c.sum = "" })
		return
	}
	sum := fmt.Sprintf("K%s: the handler ran %s", t.title[1:], times(t.runs))
	if len(t.movements) == 0 {
		sum += "."
	} else if money, err := w.money(ctx, t); err == nil {
		sum += ", " + money
	} else {
		sum += ". What became of the money can't be read: " + err.Error()
	}
	w.update(func(c *controls) { c.sum = sum })
}

// money says what the movements of a tally that are in their tables amount to, and how much the
// account has.
func (w *Window) money(ctx context.Context, t tally) (string, error) {
	var written []stack.Movement
	for _, id := range t.movements {
		m, ok, err := w.stack.Movement(ctx, id)
		if err != nil {
			return "", err //nolint:wrapcheck // it says what can't be read
		}
		if ok { // otherwise an attempt tried to write it, and failed
			written = append(written, m)
		}
	}
	text := moved(t.movements[0], written)
	balance, ok, err := w.stack.Balance(ctx, t.account)
	if err != nil || !ok {
		return text + ".", err //nolint:wrapcheck // it says what can't be read
	}
	currency, owner, _ := strings.Cut(t.account, " ")
	return fmt.Sprintf("%s. %s has %s.", text, owner[strings.LastIndex(owner, " ")+1:], amount(balance, currency)), nil
}

// moved says what movements like the one with this id amount to.
func moved(id string, written []stack.Movement) string {
	verb := map[string]string{stack.PaymentPrefix: "charged", stack.RefundPrefix: "refunded"}[id[:min(len(id), len(stack.PaymentPrefix))]]
	if verb == "" {
		verb = "transferred"
	}
	if len(written) == 0 {
		return "nothing was " + verb
	}
	total := int64(0)
	for _, m := range written {
		total += m.Amount
	}
	end := ""
	switch written[len(written)-1].Status {
	case "reserved":
		verb, end = "reserved", ", for a transfer that has not ended"
	case "refused":
		verb, end = "reserved", ", and given back, because the transfer was refused"
	}
	return fmt.Sprintf("%s were %s %s%s", amount(total, written[0].Currency), verb, times(len(written)), end)
}

// amount returns an amount of a currency whose minor unit is a hundredth.
func amount(minor int64, currency string) string {
	return fmt.Sprintf("%d.%02d %s", minor/100, minor%100, currency)
}

// times returns a number as an adverb.
func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}
