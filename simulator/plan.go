package simulator

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// plan has the parameters of one run: which faults there are and how many, how clocks differ, how
// handlers behave. Most runs have few kinds of faults, because many at once hide one another. The
// float64 fields are shares, from 0 to 1.
type plan struct {
	keys         int
	clients      uint
	requests     int // of each client
	timeout      time.Duration
	policyHold   bool
	mixed        bool // each attempt draws its own policy
	failOpen     bool
	wait         time.Duration
	ttl          time.Duration
	pace         int           // the factor by which everybody acts more slowly; 0: as usual
	lateBy       time.Duration // the longest delay of a late request that is no transaction
	maxSkew      time.Duration // the guard's option MaxSkew
	skew         time.Duration // how much the clocks really differ
	slow         float64       // handlers that take long
	disobedient  float64       // handlers that ignore the end of their context
	bad          float64       // attempts with one of badEndings
	otherPayload float64       // requests that have another payload
	hangsUp      bool          // if a client gives up, the request's context ends, as in net/http
	killHandler  float64       // attempts that are killed in the handler
	faults       []Fault
	rate         float64 // requests to DynamoDB that meet one of the faults
	effects      effects // what handlers enlist
	steps        bool    // handlers take steps
	inner        bool    // handlers make guarded calls
	lookUp       bool    // guards look up the records of requests that say that they are repeated
	large        large   // large answers
	operators    operators
	leaseIndex   leaseIndex
	regions      regions
	deployments  deployments
	outage       outage
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
	p.mixed = chance(0.15)
	p.failOpen = chance(0.1)
	if chance(0.35) {
		p.wait = time.Duration(200+r.IntN(6000)) * time.Millisecond
	}
	if chance(0.2) {
		p.ttl = lambdaidem.MinTTL + time.Duration(r.IntN(10))*time.Minute
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

// fault draws the fault that one request meets, or None.
func (p *plan) fault(r *rand.Rand, of *request) Fault {
	faults := p.faults
	if of.tx != nil {
		faults = slices.Concat(faults, p.effects.faults)
	}
	if len(faults) == 0 || r.Float64() >= p.rate {
		return None
	}
	return faults[r.IntN(len(faults))]
}
