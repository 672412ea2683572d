package simulator

import (
	"math/rand/v2"
	"time"
)

// Fault is what becomes of one request on the wire.
type Fault string

// The faults. Each may hit any request of any attempt.
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

// wireFaults are those that a plan deals out at random.
var wireFaults = []Fault{RequestLost, RequestLate, ReplyLost, Twice, Throttled, FailBefore, FailAfter, Conflict, KillBefore, KillAfter, Stall}

// faultNames adds those that are no fate of a request.
var faultNames = append(wireFaults[:len(wireFaults):len(wireFaults)], "killed in the handler", "killed by its timeout", "client hangs up", "skewed clock", "deleted by TTL")

// plan is the character of one run: which faults there are and how many, how
// clocks differ, how handlers behave. Most runs have few kinds of faults, since
// many at once hide one another.
type plan struct {
	keys         int
	clients      uint
	requests     int // of each client
	timeout      time.Duration
	policyHold   bool
	failOpen     bool
	wait         time.Duration
	ttl          time.Duration
	maxSkew      time.Duration // what the guard is told
	skew         time.Duration // what clocks really differ by
	slow         float64       // how many handlers take long
	disobedient  float64       // how many handlers ignore their context
	bad          float64       // how many attempts end other than well
	otherPayload float64       // how many requests bring another payload
	hangsUp      bool          // clients that give up end the request's context, as net/http does
	killHandler  float64       // how many attempts are killed in the handler
	faults       []Fault
	rate         float64 // how many requests meet one of them
}

func newPlan(r *rand.Rand) plan {
	p := plan{
		keys:     1 + r.IntN(2),
		clients:  2 + r.UintN(3),
		requests: 2 + r.IntN(2),
		timeout:  time.Duration(2000+r.IntN(4000)) * time.Millisecond,
		ttl:      24 * time.Hour,
		maxSkew:  2 * time.Second,
	}
	chance := func(c float64) bool { return r.Float64() < c }
	p.policyHold = chance(0.25)
	p.failOpen = chance(0.1)
	if chance(0.35) {
		p.wait = time.Duration(200+r.IntN(6000)) * time.Millisecond
	}
	if chance(0.2) {
		p.ttl = time.Duration(1+r.IntN(10)) * time.Second
	}
	switch {
	case chance(0.4):
		p.skew = time.Duration(r.Int64N(int64(p.maxSkew)))
	case chance(0.15):
		p.skew = p.maxSkew + time.Duration(r.Int64N(int64(30*time.Second)))
	}
	p.slow = []float64{0, 0.2, 0.8}[r.IntN(3)]
	if chance(0.15) {
		p.disobedient = 0.5
	}
	p.bad = []float64{0, 0.2, 0.5}[r.IntN(3)]
	if chance(0.3) {
		p.otherPayload = 0.2
	}
	if chance(0.4) {
		p.killHandler = 0.3
	}
	p.hangsUp = chance(0.3)
	for range r.IntN(4) {
		p.faults = append(p.faults, wireFaults[r.IntN(len(wireFaults))])
	}
	p.rate = []float64{0.05, 0.15, 0.4}[r.IntN(3)]
	return p
}

// fault deals the fate of one request.
func (p *plan) fault(r *rand.Rand) Fault {
	if len(p.faults) == 0 || r.Float64() >= p.rate {
		return None
	}
	return p.faults[r.IntN(len(p.faults))]
}
