package simulator

import (
	"cmp"
	"container/heap"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/internal/simulator/wire"
)

const table = "idempotency"

// world is one run: the database, the network, the processes, and the book of
// what happened. It must live in a synctest bubble. Everything that two
// goroutines touch is under mu; what decides is only ever done by the goroutine
// that turns the world, while all others stand still.
type world struct {
	plan plan
	rng  *rand.Rand
	seed uint64
	born time.Time
	db   *wire.DB
	mut  *Mutation

	mu    sync.Mutex
	inbox []*request // sent, and not yet dealt with
	book  *book

	wake    chan struct{}
	agenda  agenda
	serving *request // whose write OnWrite is told of
	healed  bool     // no more faults
	tree    *tree    // decides instead of chance; nil in a run by seed
}

// tableRequests make the table.
var tableRequests = []struct{ op, body string }{
	{"CreateTable", `{"TableName":"` + table + `","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}]}`},
	{"UpdateTimeToLive", `{"TableName":"` + table + `","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"expiration"}}`},
}

func newWorld(seed uint64, p *plan, mut *Mutation) *world {
	r := rand.New(rand.NewPCG(seed, 0x1de3907e47))
	w := &world{rng: r, seed: seed, born: time.Now(), wake: make(chan struct{}, 1), mut: mut}
	if p == nil {
		drawn := newPlan(r)
		p = &drawn
	}
	w.plan = *p
	w.book = newBook(w)
	w.db = wire.New(time.Now)
	for _, r := range tableRequests {
		if status, _, out := w.db.Serve(r.op, []byte(r.body)); status != http.StatusOK {
			panic(fmt.Sprintf("simulator: %s: %s", r.op, out))
		}
	}
	w.db.OnWrite(w.book.wrote)
	return w
}

// request is one attempt of one call on the wire.
type request struct {
	actor  *actor
	seq    int
	op     string
	body   []byte
	reply  chan reply
	stands bool // its process stands still until the reply; under w.mu
}

type reply struct {
	status int
	header http.Header
	body   []byte
	err    error
}

// errReset is what a caller sees of a connection that broke after the request
// was sent.
var errReset = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}

// Do sends a request of the SDK's into the world: aws.HTTPClient.
func (a *actor) Do(req *http.Request) (*http.Response, error) {
	a.mustLive()
	op, body, err := wire.Request(req)
	if err != nil {
		return nil, err
	}
	r := a.submit(op, body)
	select {
	case got := <-r.reply:
		a.mustLive()
		if got.err != nil {
			return nil, got.err
		}
		return wire.Response(req, got.status, got.header, got.body), nil
	case <-req.Context().Done():
		if a.standsAt(r) { // it notices nothing before it goes on
			select {
			case <-r.reply:
			case <-a.killed:
			}
		}
		a.mustLive()
		return nil, req.Context().Err()
	case <-a.killed:
		runtime.Goexit()
		return nil, nil
	}
}

// submit puts a request before the world.
func (a *actor) submit(op string, body []byte) *request {
	a.sent++
	r := &request{actor: a, seq: a.sent, op: op, body: body, reply: make(chan reply, 1)}
	a.w.mu.Lock()
	a.w.inbox = append(a.w.inbox, r)
	if describe(r) == "release" {
		a.gaveUp++
	}
	a.w.mu.Unlock()
	a.w.stir()
	return r
}

// stir tells the turning goroutine that there is something to look at.
func (w *world) stir() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// event is something that will happen.
type event struct {
	at  time.Time
	seq int
	do  func()
}

type agenda struct {
	heap []event
	seq  int
}

func (g *agenda) Len() int           { return len(g.heap) }
func (g *agenda) Less(i, j int) bool { return g.heap[i].before(g.heap[j]) }
func (g *agenda) Swap(i, j int)      { g.heap[i], g.heap[j] = g.heap[j], g.heap[i] }
func (g *agenda) Push(x any)         { g.heap = append(g.heap, x.(event)) }
func (g *agenda) Pop() any {
	last := g.heap[len(g.heap)-1]
	g.heap = g.heap[:len(g.heap)-1]
	return last
}

func (e event) before(o event) bool {
	if c := e.at.Compare(o.at); c != 0 {
		return c < 0
	}
	return e.seq < o.seq
}

// in lets do happen after d.
func (w *world) in(d time.Duration, do func()) {
	w.agenda.seq++
	heap.Push(&w.agenda, event{time.Now().Add(d), w.agenda.seq, do})
}

// turnUntil lets the world go on until all that the groups stand for is done.
func (w *world) turnUntil(groups ...*sync.WaitGroup) {
	done := make(chan struct{})
	go func() {
		for _, g := range groups {
			g.Wait()
		}
		close(done)
	}()
	w.turn(done)
}

// turn lets the world go on until done is closed.
func (w *world) turn(done <-chan struct{}) {
	for {
		synctest.Wait()
		if w.tree != nil {
			select {
			case <-done: // a tree ends here, whether or not somebody stirred
				return
			default:
			}
			if w.branch() {
				continue
			}
		}
		w.deal()
		var timer <-chan time.Time
		if w.agenda.Len() > 0 {
			next := w.agenda.heap[0]
			if d := time.Until(next.at); d > 0 {
				timer = time.After(d)
			} else {
				heap.Pop(&w.agenda)
				next.do()
				continue
			}
		}
		select {
		case <-w.wake:
		case <-timer:
		case <-done:
			return
		}
	}
}

// settle works off the agenda: what is still on the wire arrives.
func (w *world) settle() {
	for w.agenda.Len() > 0 {
		next := heap.Pop(&w.agenda).(event)
		if d := time.Until(next.at); d > 0 {
			time.Sleep(d)
		}
		next.do()
		synctest.Wait()
		w.deal()
	}
}

// deal gives each new request its fate, in an order that doesn't depend on
// which goroutine came first.
func (w *world) deal() {
	for _, r := range w.takeInbox() {
		f := None
		if !w.healed {
			f = w.plan.fault(w.rng)
		}
		w.befall(r, f, w.inTime(r))
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

// ms is a random time of up to n milliseconds, in nanoseconds so that no two
// fall together.
func (w *world) ms(n int) time.Duration {
	return 1 + time.Duration(w.rng.Int64N(int64(n)*int64(time.Millisecond)))
}

// inTime is the passage of a request that takes its time on the wire.
type inTime struct {
	w           *world
	r           *request
	there, back time.Duration
}

func (w *world) inTime(r *request) inTime { return inTime{w, r, w.ms(20), w.ms(20)} }

func (p inTime) arrive(do func()) { p.w.in(p.there, do) }
func (p inTime) late()            { p.w.in(p.w.ms(20_000), func() { p.w.serve(p.r) }) }
func (p inTime) again()           { p.w.in(p.there+p.w.ms(20_000), func() { p.w.serve(p.r) }) }
func (p inTime) wake(do func()) {
	p.w.in(p.w.plan.timeout+p.w.plan.maxSkew+p.w.ms(20_000), do)
}
func (p inTime) reply(rep reply) { p.w.in(p.back, func() { p.r.reply <- rep }) }
func (p inTime) silence() {
	if p.w.rng.IntN(2) == 0 {
		p.reply(reply{err: errReset})
	}
}

// serve lets the database serve a request.
func (w *world) serve(r *request) reply {
	if r.op == working { // a handler's own step
		return reply{status: http.StatusOK}
	}
	w.serving = r
	defer func() { w.serving = nil }()
	body := r.body
	if w.mut != nil && w.mut.Request != nil {
		body = w.mut.Request(r.op, body)
	}
	status, header, out := w.db.Serve(r.op, body)
	w.book.served(r, status, out)
	if w.mut != nil && w.mut.Reply != nil {
		if out2 := w.mut.Reply(r.op, r.body, status, out); string(out2) != string(out) {
			out, header = out2, header.Clone()
			header.Del("X-Amz-Crc32")
		}
	}
	return reply{status: status, header: header, body: out}
}

// describe names a request by what it is for.
func describe(r *request) string {
	switch r.op {
	case "PutItem":
		return "acquire"
	case "GetItem":
		return "get"
	case "UpdateItem":
		var u struct{ ExpressionAttributeValues map[string]map[string]string }
		if err := json.Unmarshal(r.body, &u); err == nil {
			if _, over := u.ExpressionAttributeValues[":seen_token"]; over {
				return "take over"
			}
			switch u.ExpressionAttributeValues[":status"]["S"] {
			case "COMPLETED":
				return "complete"
			case "RELEASED":
				return "release"
			}
		}
	}
	return r.op
}
