package window

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/internal/sequence"
	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
	"github.com/lambdaidem/toolkit/localstack/rehearsal"
)

// query is a call of DynamoDB on behalf of an HTTP request.
type query struct {
	w         *Window
	request   *proxy.Request
	exchange  *exchange
	process   string // party ID
	access    rehearsal.Access
	delivered bool
}

// Trace has the window show what becomes of a request to DynamoDB. Call it before any fault
// is chosen for the request.
func (w *Window) Trace(r *proxy.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.exchange(r.TraceID)
	if x == nil || x.process == "" {
		return
	}
	q := &query{w: w, request: r, exchange: x, process: x.process, access: rehearsal.AccessOf(r)}
	r.Trace = &proxy.Trace{Deliver: q.deliver, Answer: q.answer, Cut: q.cut}
}

// deliver lets DynamoDB carry the request out. After a write to a record it reads the record,
// while the process still waits for DynamoDB's reply.
func (q *query) deliver(deliver func() (proxy.Reply, error)) (proxy.Reply, error) {
	q.delivered = true
	call, at := q.call(), time.Now()
	if !q.access.Kind.Changes() {
		q.w.history.addAt(at, call)
		return deliver()
	}
	reply, err := deliver()
	if err == nil && reply.Status == http.StatusOK {
		q.locked()
		call.Record = q.w.readRecord(q.access, q.exchange)
	}
	q.w.history.addAt(at, call)
	return reply, err
}

// locked remembers the first record that the request's invocation has locked: that of the
// request. Other records are those of guarded calls inside the handler.
func (q *query) locked() {
	q.w.mu.Lock()
	defer q.w.mu.Unlock()
	if q.exchange.record == "" && (q.access.Kind == rehearsal.Lock || q.access.Kind == rehearsal.Takeover) {
		q.exchange.record = q.access.Record
	}
}

// answer shows DynamoDB's reply.
func (q *query) answer(reply proxy.Reply, gone bool) {
	if !q.delivered { // refused in DynamoDB's place
		q.w.history.add(q.call())
	}
	q.w.history.add(sequence.Event{
		From: database.ID, To: q.process, Request: q.exchange.label, Kind: sequence.Reply, Lost: gone,
		Text: q.outcome(reply), Detail: replyText(reply.Body),
	})
}

// cut shows that the request or its reply is lost.
func (q *query) cut() {
	if !q.delivered {
		call := q.call()
		call.Lost = true
		q.w.history.add(call)
		return
	}
	q.w.history.add(sequence.Event{
		From: database.ID, To: q.process, Request: q.exchange.label, Kind: sequence.Reply, Lost: true,
		Text: "the reply does not arrive: the process can't know whether its request was carried out",
	})
}

// purposes says what a request does to a record, and under which condition.
var purposes = map[rehearsal.AccessKind]string{
	rehearsal.Read:       "reads the record",
	rehearsal.Lock:       "locks the record (only if there is none)",
	rehearsal.Takeover:   "takes the record over (only if it is as it was read)",
	rehearsal.SaveStep:   "stores the result of a step (only if this attempt still has the lock)",
	rehearsal.WritePart:  "stores a part of a large answer",
	rehearsal.Completion: "stores the answer (only if this attempt still has the lock)",
	rehearsal.Release:    "releases the record (only if this attempt still has the lock)",
	rehearsal.Hold:       "lets the record wait for an operator (only if it is as it was read)",
}

func (q *query) call() sequence.Event {
	text := q.request.Operation + ": "
	if purpose := purposes[q.access.Kind]; purpose != "" {
		text += purpose
		if q.access.Writes > 0 {
			text += fmt.Sprintf(", with %s, all or nothing", plural(q.access.Writes, "effect of the handler", "effects of the handler"))
		}
	} else {
		text += "table " + strings.Join(q.w.tableNames(q.access.Tables), ", ")
	}
	return sequence.Event{From: q.process, To: database.ID, Request: q.exchange.label, Kind: sequence.Call, Text: text, Detail: requestText(q.request.Operation, q.request.Body)}
}

// outcome says in words what DynamoDB replied.
func (q *query) outcome(reply proxy.Reply) string {
	if reply.Status == http.StatusOK {
		switch q.access.Kind {
		case rehearsal.Lock, rehearsal.Takeover:
			return "done: this attempt has the lock, and runs the handler"
		case rehearsal.Completion:
			return "done: the answer is stored"
		case rehearsal.Other, rehearsal.Read, rehearsal.SaveStep, rehearsal.WritePart, rehearsal.Release, rehearsal.Hold:
		}
		return "done"
	}
	var failure refusal
	_ = json.Unmarshal(reply.Body, &failure) // an unreadable one is shown by its status
	_, kind, _ := strings.Cut(failure.Type, "#")
	switch {
	case kind == "ConditionalCheckFailedException", kind == "TransactionCanceledException":
		return q.refused(failure.record())
	case kind != "":
		return fmt.Sprintf("%d %s", reply.Status, kind)
	}
	return fmt.Sprint(reply.Status)
}

// refused says why a condition does not hold, given the token and the status of the record
// that DynamoDB sends along. The token is empty if there is none.
func (q *query) refused(token, status string) string {
	own := token != "" && token == q.access.Token
	switch {
	case own && status == "INPROGRESS" && q.access.Kind == rehearsal.Lock:
		return "refused, because there is a record: it has this attempt's own token, so this attempt has the lock, and runs the handler"
	case own && status == "COMPLETED":
		return "refused, because the answer is stored already, by this attempt itself"
	case q.access.Kind == rehearsal.Lock && status == "COMPLETED":
		return "refused, because there is a record: it is completed, and here is its answer"
	case q.access.Kind == rehearsal.Lock && status == "INPROGRESS":
		return "refused, because there is a record: another attempt has the lock"
	case q.access.Kind == rehearsal.Lock:
		return "refused, because there is a record"
	case q.access.Kind == rehearsal.Completion && token != "":
		return "refused, because another attempt has the record now: nothing is written"
	}
	return "refused: a condition does not hold, and nothing is written"
}

// refusal is an error of DynamoDB, with the item whose condition does not hold.
type refusal struct {
	Type                string `json:"__type"`
	Item                recordItem
	CancellationReasons []struct{ Item recordItem }
}

type recordItem map[string]struct{ S string }

// record returns the token and the status of the record in the error, or "".
func (r *refusal) record() (token, status string) {
	item := r.Item
	for _, reason := range r.CancellationReasons {
		if item == nil {
			item = reason.Item
		}
	}
	return item["token"].S, item["status"].S
}

// tableNames returns the logical IDs of tables, without the word Table, each once.
func (w *Window) tableNames(tables []string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for _, table := range tables {
		name := table
		if w.stack != nil {
			for _, t := range w.stack.Template().Tables {
				if t.Name == table {
					name = shortName(t.LogicalID, "Table")
				}
			}
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
