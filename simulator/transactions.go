package simulator

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
)

// transaction is what the simulator knows about a TransactWriteItems request.
type transaction struct {
	token   string
	actions int
	record  recordAction
	over    bool // it claims a record that its sender has seen
}

// recordAction is what a transaction does with a record.
type recordAction int

// The record actions. The transaction of an unguarded run has none.
const (
	noRecord  recordAction = iota
	completes              // an update under the lease
	claims                 // a put of a new record, or an update of a record that was seen; completes it at once
)

// parseTransaction reads the body of a TransactWriteItems.
func parseTransaction(body []byte) *transaction {
	var in struct {
		ClientRequestToken string
		TransactItems      []map[string]struct {
			TableName                 string
			ExpressionAttributeValues map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		panic("simulator: a transaction can't be read: " + err.Error())
	}
	t := &transaction{token: in.ClientRequestToken, actions: len(in.TransactItems)}
	for kind, action := range in.TransactItems[0] {
		if action.TableName == table {
			_, t.over = action.ExpressionAttributeValues[":seen_token"]
			t.record = completes
			if kind == "Put" || t.over {
				t.record = claims
			}
		}
	}
	return t
}

// records returns the number of actions on a record, 0 or 1. They come before the handler's actions.
func (t *transaction) records() int {
	if t.record == noRecord {
		return 0
	}
	return 1
}

// someWrite returns the index of one of the handler's writes, which n selects. It returns 0, the
// record's action, if the handler has none.
func (t *transaction) someWrite(n int) int {
	if writes := t.actions - t.records(); writes > 0 {
		return t.records() + n%writes
	}
	return 0
}

// reasons returns the cancellation reasons of a transaction in which only the action with the given
// index failed.
func (t *transaction) reasons(code string, at int) []string {
	all := slices.Repeat([]string{memdynamo.ReasonNone}, t.actions)
	all[at] = code
	return all
}

// cancellation returns the reasons of a cancelled transaction, one code for each action. It returns
// nil if the reply says anything else.
func cancellation(out []byte) []string {
	if !strings.Contains(string(out), memdynamo.TransactionCanceled) {
		return nil
	}
	var in struct{ CancellationReasons []struct{ Code string } }
	if err := json.Unmarshal(out, &in); err != nil {
		panic("simulator: a cancellation can't be read: " + err.Error())
	}
	var codes []string
	for _, r := range in.CancellationReasons {
		codes = append(codes, r.Code)
	}
	return codes
}

// commits reports whether the run's enlisted writes must be committed if their condition holds.
func (r *run) commits() bool {
	return r.enlisted && r.leaves(r.meant) == completed && (r.meant == Created || r.whenFailed)
}

// panicked reports whether the handler or its ElseFunc panicked.
func (r *run) panicked() bool { return r.how == Panicked || r.how == RefusedPanicked }

// refused reports whether the run's condition failed.
func (r *run) refused() bool { return r.how != r.meant }
