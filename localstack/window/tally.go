package window

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// maxTallies is how many of the latest records are counted for.
const maxTallies = 1000

// tally counts what was done for one record.
type tally struct {
	record   string
	key      string
	runs     int      // how often the handler ran
	payments []string // ids of the payments that attempts have tried to write
}

// tally returns the tally of the record of an exchange. The caller has w.mu.
func (w *Window) tally(x *exchange) *tally {
	for _, t := range slices.Backward(w.tallies) {
		if t.record == x.asked {
			return t
		}
	}
	t := &tally{record: x.asked, key: x.request.Key}
	w.tallies = append(w.tallies, t)
	if len(w.tallies) > maxTallies {
		w.tallies = slices.Delete(w.tallies, 0, len(w.tallies)-maxTallies)
	}
	return t
}

// tried adds payments that are not there yet.
func (t *tally) tried(payments []string) {
	for _, id := range payments {
		if !slices.Contains(t.payments, id) {
			t.payments = append(t.payments, id)
		}
	}
}

// paymentsIn returns the ids of the payments that a transaction writes, if the stack is this
// project's own. The caller has w.mu.
func (w *Window) paymentsIn(body []byte) []string {
	if w.stack == nil || !w.samples() {
		return nil
	}
	var request struct {
		TransactItems []struct{ Put statement }
	}
	if json.Unmarshal(body, &request) != nil {
		return nil
	}
	var ids []string
	for _, item := range request.TransactItems {
		id, ok := item.Put.Item["id"].(*types.AttributeValueMemberS)
		if ok && item.Put.TableName == w.stack.Table("PaymentsTable") && strings.HasPrefix(id.Value, "pay_") {
			ids = append(ids, id.Value)
		}
	}
	return ids
}

// sumUp shows how often the handler ran for a record, and what was charged: the payments are
// read from their table.
func (w *Window) sumUp(ctx context.Context, record string) {
	w.summing.Lock() // so that no earlier sum is shown after a later one
	defer w.summing.Unlock()
	w.mu.Lock()
	i := slices.IndexFunc(w.tallies, func(t *tally) bool { return t.record == record })
	var t tally
	if i >= 0 {
		t = *w.tallies[i]
		t.payments = slices.Clone(t.payments)
	}
	w.mu.Unlock()
	if i < 0 || t.runs == 0 {
		w.update(func(c *controls) { c.sum = "" })
		return
	}
	sum := fmt.Sprintf("Key %s: the handler ran %s", t.key, times(t.runs))
	if len(t.payments) > 0 {
		charged, err := w.charged(ctx, t.payments)
		if err != nil {
			charged = "what was charged can't be read: " + err.Error()
		}
		sum += ", " + charged
	}
	w.update(func(c *controls) { c.sum = sum + "." })
}

// charged says what the payments that are in the table amount to.
func (w *Window) charged(ctx context.Context, payments []string) (string, error) {
	count, total, currency := 0, int64(0), ""
	for _, id := range payments {
		p, written, err := w.stack.Payment(ctx, id)
		if err != nil {
			return "", err //nolint:wrapcheck // it says what can't be read
		}
		if written { // otherwise an attempt tried to write it, and failed
			count, total, currency = count+1, total+p.Amount, p.Currency
		}
	}
	if count == 0 {
		return "nothing was charged", nil
	}
	return fmt.Sprintf("%d.%02d %s were charged %s", total/100, total%100, currency, times(count)), nil
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
