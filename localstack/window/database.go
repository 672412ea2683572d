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
	names     attributeNames
	outer     bool     // for the record of the HTTP request, and not for that of a guarded call inside the handler
	steps     []string // the names of the steps whose results it adds to the record
	token     string   // the ClientRequestToken of a transaction; empty: none
	repeats   bool     // an earlier request with the same token was carried out
	delivered bool
	answered  bool // guarded by w.mu

	// Of requests that store the answer:
	sent   time.Time     // when the process sent it
	try    int           // 1 for the first request with this body, 2 for the second
	waited time.Duration // how long the process waited in vain for a reply to the try before; 0: it got one
	late   bool          // the network has held the request up; guarded by w.mu
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
	access := rehearsal.AccessOf(r)
	q := &query{w: w, request: r, exchange: w.senderOf(access, x), process: x.process, access: access, token: transactionToken(r.Body), sent: time.Now(), try: 1}
	q.repeats = q.token != "" && q.exchange.committed == q.token
	w.noticeNames(access)
	q.names = w.attributes[access.Table]
	if access.Kind == rehearsal.SaveStep {
		q.steps = without(stepsIn(r.Body), q.exchange.steps)
	}
	w.asks(q)
	r.Trace = &proxy.Trace{Deliver: q.deliver, Answer: q.answer, Cut: q.cut, Killed: q.killed}
}

// deliver lets DynamoDB carry the request out. After a write to a record it reads the record,
// while the process still waits for DynamoDB's reply.
func (q *query) deliver(deliver func() (proxy.Reply, error)) (proxy.Reply, error) {
	q.delivered = true
	call, at := q.call(), time.Now()
	if q.isLate() { // its process does nothing at this moment
		call.From = world.ID
	}
	if !q.access.Kind.Changes() {
		q.w.history.addAt(at, call)
		return deliver()
	}
	reply, err := deliver()
	switch {
	case err == nil && reply.Status != http.StatusOK:
		q.refusedBy(reply)
	case err == nil && !q.repeats:
		q.carriedOut()
		call.Record = q.w.readRecord(q.access, q.exchange)
	}
	q.w.history.addAt(at, call)
	return reply, err
}

// answer shows DynamoDB's reply, and the handler's run if the reply lets it begin.
func (q *query) answer(reply proxy.Reply, gone bool) {
	if !q.delivered { // refused in DynamoDB's place
		q.w.history.add(q.call())
	}
	text := q.outcome(reply)
	if gone {
		text += "; but nobody waits for this reply any more: " + q.whyGone()
	}
	q.w.history.add(sequence.Event{
		From: database.ID, To: q.process, Request: q.exchange.label, Kind: sequence.Reply, Lost: gone,
		Text: text, Detail: replyText(reply.Body),
	})
	if !gone {
		q.w.mu.Lock()
		q.answered = true
		q.w.mu.Unlock()
		q.learned(reply)
	}
}

// cut shows that the request or its reply is lost.
func (q *query) cut() {
	if q.delivered {
		q.w.history.add(sequence.Event{
			From: database.ID, To: q.process, Request: q.exchange.label, Kind: sequence.Reply, Lost: true,
			Text: "the reply does not arrive: the process can't know whether its request was carried out",
		})
		return
	}
	call := q.call()
	call.Lost = true
	q.w.history.add(call)
}

// isLate reports whether the network has held the request up.
func (q *query) isLate() bool {
	q.w.mu.Lock()
	defer q.w.mu.Unlock()
	return q.late
}

// whyGone says why nobody waits for the reply.
func (q *query) whyGone() string {
	q.w.mu.Lock()
	defer q.w.mu.Unlock()
	for _, p := range q.w.processes {
		if p.party.ID == q.process {
			return "the process has given up"
		}
	}
	return "the process has ended"
}

// killed shows that the process dies instead of sending the request.
func (q *query) killed() {
	q.w.mu.Lock()
	stored := q.exchange.seen.stored
	q.w.mu.Unlock()
	text := "has run the handler, and dies before the write that stores the answer leaves it"
	switch {
	case !q.outer:
		text = "dies in a call inside the handler, before the write that stores its answer leaves the process"
	case stored:
		text = "dies before it sends the write that stores the answer again. It has never heard that the first try was carried out"
	case q.try > 1:
		text = "dies before it sends the write that stores the answer again"
	}
	q.w.history.add(q.note(text))
}

// purposes says what a request does to a record, and under which condition.
var purposes = map[rehearsal.AccessKind]string{
	rehearsal.Read:       "reads the record",
	rehearsal.Lock:       "locks the record (only if there is none that is valid)",
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
		if !q.outer {
			text += "in a call inside the handler, "
		}
		if len(q.steps) > 0 {
			purpose = strings.Replace(purpose, "the result of a step", resultsOf(q.steps), 1)
		}
		if q.access.Kind == rehearsal.Completion && q.access.Whole {
			purpose = "stores the answer in a new record (only if there is none that is valid)"
		}
		text += purpose
		if q.access.Writes > 0 {
			text += ", with " + plural(q.access.Writes, "effect of the handler", "effects of the handler")
			if q.access.Checks > 0 {
				text += " and " + plural(q.access.Checks, "check", "checks") + " of another item"
			}
			text += ", all or nothing"
		}
	} else {
		text += "table " + strings.Join(q.w.tableNames(q.access.Tables), ", ")
	}
	detail := requestText(q.request.Operation, q.request.Body)
	if q.token != "" && !q.repeats {
		detail = "ClientRequestToken " + q.token + "\n\n" + detail
	}
	if q.try > 1 && !q.repeats {
		text += fmt.Sprintf("; try %d of the same write", q.try)
	}
	if q.try > 1 && q.waited > 0 {
		text += fmt.Sprintf(", because no reply came for %.1f s", q.waited.Seconds())
	}
	if q.repeats {
		text += "; the same request again, with the same ClientRequestToken"
		detail = "DynamoDB has carried out a request with this ClientRequestToken, and writes nothing again: " + q.token + "\n\n" + detail
	}
	return sequence.Event{From: q.process, To: database.ID, Request: q.exchange.label, Kind: sequence.Call, Text: text, Detail: detail}
}

// outcome says in words what DynamoDB replied.
func (q *query) outcome(reply proxy.Reply) string {
	if reply.Status == http.StatusOK {
		if q.repeats {
			return "done already: DynamoDB recognizes the ClientRequestToken, and writes nothing again"
		}
		switch q.access.Kind {
		case rehearsal.Lock, rehearsal.Takeover:
			return "done: this attempt has the lock"
		case rehearsal.Completion:
			if !q.outer {
				return "done: the answer of the call inside the handler is stored"
			}
			return "done: the answer is stored"
		case rehearsal.Other, rehearsal.Read, rehearsal.SaveStep, rehearsal.WritePart, rehearsal.Release, rehearsal.Hold:
		}
		return "done"
	}
	failure := refusalOf(reply)
	switch {
	case failure.isCondition():
		return q.refused(failure.record(q.names))
	case failure.kind() != "":
		return fmt.Sprintf("%d %s", reply.Status, failure.kind())
	}
	return fmt.Sprint(reply.Status)
}

// refused says why a condition does not hold, given the record that DynamoDB sends along.
func (q *query) refused(r foundRecord) string {
	own := q.isOwn(r)
	locks := q.access.Kind == rehearsal.Lock || q.access.Whole
	switch {
	case own && r.status == inProgress && locks:
		return "refused, because there is a record: it has this attempt's own token, so this attempt has the lock"
	case own && r.status == completed:
		return "refused, because the answer is stored already, by this attempt itself"
	case locks && r.status == completed && q.hasOther(r.fingerprint):
		return "refused, because there is a record: it is completed, and its fingerprint is that of another body"
	case locks && r.status == completed:
		return "refused, because there is a record: it is completed, and here is its answer"
	case locks && r.status == inProgress && time.Now().Before(r.leaseEnd):
		return "refused, because there is a record: another attempt has the lock"
	case locks && r.status == inProgress && r.held:
		return "refused, because there is a record: it is held, and waits for an operator"
	case locks && r.status == inProgress:
		return "refused, because there is a record: an earlier attempt left it, and its lease is over"
	case locks && r.status == released:
		return "refused, because there is a record: it was released without an answer"
	case locks:
		return "refused, because there is a record"
	case q.access.Kind == rehearsal.Completion && r.token != "":
		return "refused, because another attempt has the record now: nothing is written"
	}
	return "refused: a condition does not hold, and nothing is written"
}

// isOwn reports whether a record has the token of the attempt that sent the request.
func (q *query) isOwn(r foundRecord) bool { return r.token != "" && r.token == q.access.Token }

// hasOther reports whether a record's fingerprint is of another body than that of the request that
// locks the record. Fingerprints before whose first dot the texts differ can't be compared: they
// have been computed in different ways.
func (q *query) hasOther(fingerprint string) bool {
	var request struct{ Item recordItem }
	if json.Unmarshal(q.request.Body, &request) != nil {
		return false
	}
	way, digest, _ := strings.Cut(fingerprint, ".")
	ownWay, ownDigest, _ := strings.Cut(request.Item[q.names.fingerprint()].S, ".")
	return way == ownWay && digest != ownDigest
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
