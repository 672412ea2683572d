package simulator

import "github.com/lambdaidem/toolkit/internal/memdynamo"

// Fault is something that goes wrong, mostly with one request.
type Fault string

// The faults of requests. Each may hit any request of any attempt.
const (
	None        Fault = ""
	RequestLost Fault = "request lost"         // never arrives; the sender's connection breaks or hangs
	RequestLate Fault = "request late"         // arrives long after the sender gave up
	ReplyLost   Fault = "reply lost"           // is served; the sender's connection breaks or hangs
	Twice       Fault = "request twice"        // is served again later; nobody gets the second reply
	Throttled   Fault = "throttled"            // refused for capacity
	FailBefore  Fault = "500 before the write" // refused, but the sender can't know that
	FailAfter   Fault = "500 after the write"  // served, but the sender can't know that
	Conflict    Fault = "transaction conflict" // refused: a transaction holds the item
	KillBefore  Fault = "killed before"        // the process dies as it sends the request, which is lost
	KillAfter   Fault = "killed after"         // the process dies once its request is served
	Stall       Fault = "stalled"              // the process stands still past its lease, and then continues
)

// The faults that only transactions can meet.
const (
	WriteConflict  Fault = "transaction conflict on a write" // cancelled: a transaction holds an item that the handler writes
	WriteThrottled Fault = "throttled write"                 // cancelled: a table that the handler writes has no capacity left
	Unfinished     Fault = "transaction in progress"         // its reply is lost, and it is still in progress when it is sent again
)

// The other faults.
const (
	HandlerKilled Fault = "killed in the handler"
	TimedOut      Fault = "killed by its timeout" // by Lambda
	HungUp        Fault = "client hangs up"
	SkewedClock   Fault = "skewed clock"
	DeletedByTTL  Fault = "deleted by TTL"
	OtherPolicy   Fault = "another policy" // a policy other than the plan's: two versions of a function use one table
	RegionFailed  Fault = "its Region failed"
)

// wireFaults are the faults from which a plan draws at random.
var wireFaults = []Fault{RequestLost, RequestLate, ReplyLost, Twice, Throttled, FailBefore, FailAfter, Conflict, KillBefore, KillAfter, Stall}

// transactionFaults are the faults that only transactions can meet.
var transactionFaults = []Fault{WriteConflict, WriteThrottled, Unfinished}

// handlerFaults are the faults that a handler's work can meet in a small case.
var handlerFaults = []Fault{KillBefore, Stall}

// allFaults are the faults that must happen in a simulation. Otherwise it proves nothing about them.
var allFaults = append(wireFaults[:len(wireFaults):len(wireFaults)], HandlerKilled, TimedOut, HungUp, SkewedClock, DeletedByTTL, OtherPolicy, WriteConflict, WriteThrottled, Unfinished)

// delivery delivers a request and its reply: over the network, which takes time (networkDelivery),
// or at once, in a small case (instantDelivery).
type delivery interface {
	arrive(do func()) // the request reaches the database
	late()            // the request reaches the database long after its sender gave up
	again()           // the request reaches the database once more, long after the first time
	slow()            // the request reaches the database now, and is served some time later
	wake(do func())   // the process continues, past its lease
	reply(reply)      // the reply reaches the process
	silence()         // the process gets no reply: the connection breaks or hangs
}

// deliver delivers a request, which meets the fault f unless f is None.
func (w *world) deliver(r *request, f Fault, p delivery) {
	if f != None {
		w.meet(r, f)
	}
	served := func() { p.reply(w.serve(r)) }
	refuse := func(kind, message string) {
		status, header, body := memdynamo.Error(kind, message)
		p.reply(reply{status: status, header: header, body: body})
	}
	cancel := func(code string, at int) {
		status, header, body := memdynamo.Canceled(r.tx.reasons(code, at)...)
		w.journal.cancelled(r, body)
		p.reply(w.answer(r, status, header, body))
	}
	switch f {
	case None:
		p.arrive(served)
	case RequestLost:
		p.silence()
	case RequestLate:
		p.silence()
		p.late()
	case ReplyLost:
		p.arrive(func() {
			w.serve(r)
			w.journal.add(entry{kind: kindLoss, actor: r.actor, request: r.label})
		})
		p.silence()
	case Twice:
		p.arrive(served)
		p.again()
	case Throttled:
		refuse(memdynamo.Throttling, "Rate of requests exceeds the allowed throughput.")
	case FailBefore:
		refuse(memdynamo.InternalServerError, "Internal server error")
	case FailAfter:
		p.arrive(func() {
			w.serve(r)
			refuse(memdynamo.InternalServerError, "Internal server error")
		})
	case Conflict:
		if r.tx != nil {
			cancel(memdynamo.ReasonTransactionConflict, 0) // on the record, if there is one
			return
		}
		if w.plan.regions.mode == memdynamo.Strong { // such a table has no transactions
			w.journal.path(RegionsRefused)
			refuse(memdynamo.ReplicatedWriteConflict, regionConflict)
			return
		}
		refuse(memdynamo.TransactionConflict, "Transaction is ongoing for the item")
	case WriteConflict:
		cancel(memdynamo.ReasonTransactionConflict, r.tx.someWrite(r.seq))
	case WriteThrottled:
		cancel(memdynamo.ReasonThrottling, r.tx.someWrite(r.seq))
	case Unfinished:
		w.unfinished[r.tx.token] = r
		p.silence()
		p.slow()
	case KillBefore:
		p.arrive(func() { w.kill(r.actor, f) })
	case KillAfter:
		p.arrive(func() {
			w.serve(r)
			w.kill(r.actor, f)
		})
	case Stall:
		// The process stands still before it sends the request. Its context ends meanwhile, and
		// the process doesn't notice.
		p.wake(served)
	default:
		panic("simulator: no request meets " + string(f))
	}
}

// meet records that a request meets a fault.
func (w *world) meet(r *request, f Fault) {
	w.journal.fault(f)
	if r.tx != nil {
		w.journal.path(met(f))
	}
	w.journal.add(entry{kind: kindFault, actor: r.actor, request: r.label, fault: f})
	w.mu.Lock()
	defer w.mu.Unlock()
	r.actor.met[f] = true
	r.stalled = f == Stall
}
