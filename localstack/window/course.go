package window

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/lambdaidem/toolkit/internal/sequence"
	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
	"github.com/lambdaidem/toolkit/localstack/rehearsal"
)

// asks notes that a process sends a query. The first query for a record tells the record of
// the HTTP request. The caller has w.mu.
func (w *Window) asks(q *query) {
	x := q.exchange
	if x.asked == "" {
		x.asked = q.access.Record
	}
	if q.access.Kind == rehearsal.Completion {
		w.tries(x, q.request.Body)
	}
	q.outer = q.access.Record != "" && q.access.Record == x.asked
	if !q.outer {
		return
	}
	x.seen.asked = q.access.Kind
	if q.access.Kind != rehearsal.Completion {
		return
	}
	if before := x.stores; before != nil && bytes.Equal(before.request.Body, q.request.Body) {
		q.try, q.waited = before.try+1, q.sent.Sub(before.sent)
		if before.answered {
			q.waited = 0
		}
	}
	x.stores = q
	if !x.seen.ran { // the guard is optimistic, or lets requests pass when the table fails
		w.runs(x)
		x.seen.whole = q.access.Whole
	}
}

// runs notes that the handler runs. The caller has w.mu.
func (w *Window) runs(x *exchange) {
	t := w.tally(x)
	x.seen.ran, x.seen.again = true, t.runs > 0
	t.runs++
}

// senderOf returns the exchange on whose behalf a process sends a query during the exchange x:
// an earlier one if the process had been frozen before it could end its attempt. The caller
// has w.mu.
func (w *Window) senderOf(a rehearsal.Access, x *exchange) *exchange {
	if x.asked != "" || a.Record == "" || a.Kind == rehearsal.Lock || a.Kind == rehearsal.Read || a.Kind == rehearsal.Completion {
		return x
	}
	for _, earlier := range slices.Backward(w.exchanges) {
		if earlier.asked == a.Record {
			return earlier
		}
	}
	return x
}

// carriedOut notes that DynamoDB has carried a query out.
func (q *query) carriedOut() {
	q.w.mu.Lock()
	defer q.w.mu.Unlock()
	x := q.exchange
	if q.token != "" {
		x.committed = q.token
	}
	if !q.outer {
		return
	}
	switch q.access.Kind {
	case rehearsal.Lock, rehearsal.Takeover:
		x.record, x.seen.lockedBy = q.access.Record, q.access.Kind
	case rehearsal.Completion:
		x.seen.stored, x.seen.effects = true, q.access.Writes > 0
	case rehearsal.Release:
		x.seen.released = true
	case rehearsal.SaveStep:
		x.steps = append(x.steps, q.steps...)
		slices.Sort(x.steps)
		x.seen.saved = resultsOf(x.steps)
	case rehearsal.Other, rehearsal.Read, rehearsal.WritePart, rehearsal.Hold:
	}
}

// refusedBy notes that DynamoDB has refused a query.
func (q *query) refusedBy(reply proxy.Reply) {
	failure := refusalOf(reply)
	found := failure.record(q.names)
	q.w.mu.Lock()
	defer q.w.mu.Unlock()
	if q.outer && q.access.Kind == rehearsal.Completion && failure.isCondition() && found.token != "" && !q.isOwn(found) {
		q.exchange.seen.overtaken = true
	}
}

// learned notes what a process has learned from a reply. A reply that gives an attempt the
// lock lets the handler run, which the diagram shows.
func (q *query) learned(reply proxy.Reply) {
	w, x, kind := q.w, q.exchange, q.access.Kind
	done, failure := reply.Status == http.StatusOK, refusalOf(reply)
	found := failure.record(q.names)
	w.mu.Lock()
	defer w.mu.Unlock()
	locks := kind == rehearsal.Lock || kind == rehearsal.Takeover
	ownToken := !done && locks && q.isOwn(found) && found.status == inProgress
	hasLock := done && locks || ownToken
	if !q.outer {
		if hasLock {
			w.history.add(q.note("makes the guarded call inside the handler"))
		}
		return
	}
	if kind == rehearsal.Completion && done && q.repeats {
		x.seen.repeated = true
	}
	if !hasLock || x.seen.ran {
		return
	}
	x.seen.knows, x.seen.ownToken = true, ownToken
	if kind == rehearsal.Takeover && done { // the reply has the record as it was before
		x.steps = found.steps
		x.seen.left, x.seen.reused = found.status, resultsOf(found.steps)
	}
	w.runs(x)
	text := "runs the handler"
	if x.seen.again {
		text = "runs the handler again, because no earlier run has stored the answer to this request"
	}
	if x.seen.reused != "" {
		text += ". The record has " + x.seen.reused + ": the handler does not carry that out again"
	}
	w.history.add(q.note(text))
}

func (q *query) note(text string) sequence.Event {
	return sequence.Event{From: q.process, Request: q.exchange.label, Kind: sequence.Note, Text: text}
}

// transactionToken returns the ClientRequestToken of a TransactWriteItems, or "". DynamoDB
// carries requests with the same token out once (API reference, "TransactWriteItems").
func transactionToken(body []byte) string {
	var request struct{ ClientRequestToken string }
	if json.Unmarshal(body, &request) != nil {
		return ""
	}
	return request.ClientRequestToken
}
