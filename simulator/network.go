package simulator

import (
	"bytes"
	"cmp"
	"net"
	"net/http"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
)

// request is one HTTP request to DynamoDB. The SDK's retry of it is another one.
type request struct {
	label
	actor     *actor
	signed    time.Time // see signatureLife
	body      []byte
	tx        *transaction // nil unless the request is a TransactWriteItems
	reply     chan reply
	stalled   bool // its process stands still until the reply; under w.mu
	withdrawn bool // the handler has stopped working before this step was done; under w.mu
}

type reply struct {
	status int
	header http.Header
	body   []byte
	err    error

	cancelled []string // the reasons why DynamoDB cancelled the transaction; nil if it did not
}

// errReset is the error of a connection that broke after the request was sent.
var errReset = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}

// ofInvocation is the HTTP client of all functions. It sends each request as the invocation whose
// context the request has.
type ofInvocation struct{}

type actorKey struct{}

func (ofInvocation) Do(req *http.Request) (*http.Response, error) {
	return req.Context().Value(actorKey{}).(*actor).Do(req)
}

// Do implements aws.HTTPClient: it sends a request to DynamoDB over the world's network.
func (a *actor) Do(req *http.Request) (*http.Response, error) {
	a.exitIfKilled()
	op, body, err := memdynamo.Request(req)
	if err != nil {
		return nil, err
	}
	r := a.submit(op, body, signedAt(req))
	select {
	case got := <-r.reply:
		a.exitIfKilled()
		if got.err != nil {
			a.w.journal.add(entry{kind: kindCutOff, actor: a, request: r.label})
			return nil, got.err
		}
		a.heard(r, got)
		return memdynamo.Response(req, got.status, a.dated(got.header), got.body), nil
	case <-req.Context().Done():
		if a.stalledAt(r) { // a stalled process doesn't notice the end of the context until it continues
			select {
			case <-r.reply:
			case <-a.killed:
			}
		}
		a.exitIfKilled()
		a.w.journal.add(entry{kind: kindCutOff, actor: a, request: r.label})
		return nil, req.Context().Err()
	case <-a.killed:
		runtime.Goexit()
		return nil, nil
	}
}

// submit puts a request into the world's inbox.
func (a *actor) submit(op string, body []byte, signed time.Time) *request {
	a.sent++
	name := label{op: op, what: describe(op, body), seq: a.sent, sent: time.Since(a.w.born)}
	r := &request{label: name, actor: a, signed: signed, body: body, reply: make(chan reply, 1)}
	if op == "TransactWriteItems" {
		r.tx = parseTransaction(body)
	}
	a.w.mu.Lock()
	a.w.inbox = append(a.w.inbox, r)
	if r.what == "release" {
		a.releasesSent++
	}
	a.readRecord = a.readRecord || op == "GetItem"
	a.w.mu.Unlock()
	a.w.notify()
	return r
}

// dispatch decides what happens to each new request, in an order that doesn't depend on which
// goroutine sent first.
func (w *world) dispatch() {
	for _, r := range w.takeInbox() {
		f := None
		if !w.healed {
			if f = w.plan.outage.fault(w.rng, time.Since(w.born), r); f == None {
				f = w.plan.fault(w.rng, r)
			}
		}
		w.deliver(r, f, w.overNetwork(r))
	}
}

func (w *world) takeInbox() []*request {
	w.mu.Lock()
	defer w.mu.Unlock()
	inbox := w.inbox
	w.inbox = nil
	slices.SortFunc(inbox, func(a, b *request) int {
		return cmp.Or(cmp.Compare(a.actor.id, b.actor.id), cmp.Compare(a.seq, b.seq))
	})
	return inbox
}

// networkDelivery delivers a request over a network that takes time.
type networkDelivery struct {
	w           *world
	r           *request
	there, back time.Duration
}

func (w *world) overNetwork(r *request) networkDelivery {
	return networkDelivery{w, r, w.randomMillis(20), w.randomMillis(20)}
}

func (p networkDelivery) arrive(do func()) { p.w.afterFunc(p.there, do) }
func (p networkDelivery) late()            { p.w.afterFunc(p.lateness(), func() { p.w.serve(p.r) }) }
func (p networkDelivery) again()           { p.w.afterFunc(p.there+p.lateness(), func() { p.w.serve(p.r) }) }
func (p networkDelivery) slow()            { p.w.afterFunc(p.w.randomMillis(2_000), func() { p.w.serve(p.r) }) }
func (p networkDelivery) lateness() time.Duration {
	if p.r.tx != nil {
		return p.w.lateness(max(p.w.plan.lateBy, p.w.plan.effects.lateBy))
	}
	return p.w.lateness(p.w.plan.lateBy)
}
func (p networkDelivery) wake(do func()) {
	p.w.afterFunc(p.w.plan.timeout+p.w.plan.maxSkew+p.w.randomMillis(20_000), do)
}
func (p networkDelivery) reply(rep reply) { p.w.afterFunc(p.back, func() { p.r.reply <- rep }) }
func (p networkDelivery) silence() {
	if p.w.rng.IntN(2) == 0 {
		p.reply(reply{err: errReset})
	}
}

// serve has the database serve a request that arrives now, and returns the reply.
func (w *world) serve(r *request) reply {
	if r.op == working { // the handler's work, which no database serves
		return reply{status: http.StatusOK}
	}
	r.arrivals++
	if refused := r.outlived(); refused != nil {
		w.journal.path(SignatureExpired)
		w.journal.add(entry{kind: kindServe, actor: r.actor, text: "its signature has expired", request: r.label, status: refused.status, body: refused.body})
		return *refused
	}
	body := r.body
	if w.mut != nil && w.mut.Request != nil {
		body = w.mut.Request(r.op, body)
	}
	w.serving = r
	defer func() { w.serving = nil }()
	db := w.dbs[0]
	if w.global != nil {
		var refused *reply
		if db, refused = w.global.receive(r, body); refused != nil {
			return *refused
		}
	}
	if r.tx != nil {
		w.journal.arrives(r, body)
		if other := w.unfinished[r.tx.token]; other != nil && other != r {
			status, header, out := memdynamo.Error(memdynamo.TransactionInProgress, "Transaction is in progress")
			w.journal.served(r, status, out)
			return reply{status: status, header: header, body: out}
		}
		delete(w.unfinished, r.tx.token)
	}
	status, header, out := db.Serve(r.op, body)
	w.journal.served(r, status, out)
	return w.answer(r, status, header, out)
}

// answer returns the database's reply to a request, changed by the mutation if there is one.
func (w *world) answer(r *request, status int, header http.Header, body []byte) reply {
	var cancelled []string
	if r.tx != nil {
		cancelled = cancellation(body) // before the mutation changes the reply
	}
	if w.mut != nil && w.mut.Reply != nil {
		if changed := w.mut.Reply(r.op, r.body, status, body); string(changed) != string(body) {
			body, header = changed, header.Clone()
			header.Del("X-Amz-Crc32")
		}
	}
	return reply{status: status, header: header, body: body, cancelled: cancelled}
}

// describe returns a name for a request's purpose, or its operation if it knows no name. It looks
// for names and values in the body as text. This is unambiguous, because a quotation mark inside a
// value is escaped.
func describe(op string, body []byte) string {
	has := func(text string) bool { return bytes.Contains(body, []byte(text)) }
	switch op {
	case "PutItem":
		if has(`"part":{"M"`) {
			return "write part"
		}
		return "acquire"
	case "GetItem":
		return "get"
	case "TransactWriteItems":
		return "commit"
	case "UpdateItem":
		completes, releases := has(`":status":{"S":"COMPLETED"}`), has(`":status":{"S":"RELEASED"}`)
		operates, seen := has(`":operations":`), has(`":seen_token":`)
		switch {
		case has(`":step_count":`):
			return "save step"
		case operates && completes:
			return "settle"
		case operates && releases:
			return "operator's release"
		case operates && has(`":expiration":`):
			return "forget"
		case seen && has(`"UpdateExpression":"SET #lease_end = :lease_end REMOVE #expiration"`):
			return "hold"
		case operates, seen && !has(`":token":`):
			return "erase"
		case seen:
			return "take over"
		case completes:
			return "complete"
		case releases:
			return "release"
		}
	}
	return op
}
