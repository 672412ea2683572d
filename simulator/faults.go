package simulator

import "github.com/lambdaidem/toolkit/internal/memdynamo"

// Fault is something that goes wrong: mostly, what becomes of one request.
type Fault string

// The faults of requests. Each may hit any request of any attempt.
const (
	None        Fault = ""
	RequestLost Fault = "request lost"         // never arrives; the caller's connection breaks or hangs
	RequestLate Fault = "request late"         // arrives long after the caller gave up
	ReplyLost   Fault = "reply lost"           // is served; the caller's connection breaks or hangs
	Twice       Fault = "request twice"        // is served again later, the second reply goes nowhere
	Throttled   Fault = "throttled"            // refused for capacity
	FailBefore  Fault = "500 before the write" // refused, but the caller can't know
	FailAfter   Fault = "500 after the write"  // served, but the caller can't know
	Conflict    Fault = "transaction conflict" // refused: a transaction holds the item
	KillBefore  Fault = "killed before"        // the process dies as it sends the request, which is lost
	KillAfter   Fault = "killed after"         // the process dies once its request is served
	Stall       Fault = "stalled"              // the process stands still, past its lease, and then goes on
)

// The faults of transactions alone.
const (
	WriteConflict  Fault = "transaction conflict on a write" // cancelled: a transaction holds an item that the handler writes
	WriteThrottled Fault = "throttled write"                 // cancelled for the capacity of a table that the handler writes
	Unfinished     Fault = "transaction in progress"         // its reply is lost, and it is still in progress when it is sent again
)

// The other faults.
const (
	HandlerKilled Fault = "killed in the handler"
	TimedOut      Fault = "killed by its timeout" // by Lambda
	HungUp        Fault = "client hangs up"
	SkewedClock   Fault = "skewed clock"
	DeletedByTTL  Fault = "deleted by TTL"
	OtherPolicy   Fault = "another policy" // than the plan's: two releases of a function serve one table
	RegionFailed  Fault = "its Region failed"
)

// wireFaults are those that a plan deals out at random.
var wireFaults = []Fault{RequestLost, RequestLate, ReplyLost, Twice, Throttled, FailBefore, FailAfter, Conflict, KillBefore, KillAfter, Stall}

// transactionFaults are those of transactions alone.
var transactionFaults = []Fault{WriteConflict, WriteThrottled, Unfinished}

// handlerFaults are those that can meet a handler's own step.
var handlerFaults = []Fault{KillBefore, Stall}

// allFaults are those that must happen, for a simulation to prove anything.
var allFaults = append(wireFaults[:len(wireFaults):len(wireFaults)], HandlerKilled, TimedOut, HungUp, SkewedClock, DeletedByTTL, OtherPolicy, WriteConflict, WriteThrottled, Unfinished)

// passage is how a request goes its way: over the network, which takes time
// (inTime), or at once, in a small case (atOnce).
type delivery interface {
	arrive(do func()) // it reaches the database
	late()            // it reaches the database long after its caller gave up
	again()           // it reaches the database once more, long after the first time
	slow()            // it reaches the database now, and is served some time later
	wake(do func())   // its process goes on, past its lease
	reply(reply)
	silence() // no reply: the connection breaks, or hangs
}

// befall lets a request meet a fault, or none, and go its way.
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
			cancel(memdynamo.ReasonTransactionConflict, 0) // the record's, if there is one
			return
		}
		if w.plan.regions.mode == memdynamo.Strong { // which has no transactions
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
		// The process stands still before the request leaves it; its context
		// ends meanwhile, and it doesn't notice.
		p.wake(served)
	default:
		panic("simulator: no request meets " + string(f))
	}
}

// meet enters that a request meets a fault.
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
