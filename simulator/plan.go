package simulator

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// plan is the character of one run: which faults there are and how many, how
// clocks differ, how handlers behave. Most runs have few kinds of faults, since
// many at once hide one another.
type plan struct {
	keys         int
	clients      uint
	requests     int // of each client
	timeout      time.Duration
	policyHold   bool
	mixed        bool // each attempt draws a policy of its own
	failOpen     bool
	wait         time.Duration
	ttl          time.Duration
	pace         int           // how many times slower than usual everybody acts; 0: once
	lateBy       time.Duration // how late a late request is at most, unless it is a transaction
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
	effects      effects // what handlers enlist
	steps        bool    // handlers take steps
	inner        bool    // handlers make guarded calls
	lookUp       bool    // guards look up requests that say that they are repeated
	large        large   // answers
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

// fault deals the fate of one request.
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
