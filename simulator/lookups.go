package simulator

import (
	"math/rand/v2"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// In some plans the guard looks up the records of requests that say that they are repeated
// (Options.Repeated). Clients say so at random, whether it is true or not.

// newLookups decides whether the guards of a plan look up records. It draws from a random
// stream of its own, so that the rest of each plan does not depend on it.
func newLookups(seed uint64, p *plan) {
	r := rand.New(rand.NewPCG(seed, 0x100c))
	p.lookUp = !p.outage.planned() && r.Float64() < 0.15
}

// saysRepeated reports whether the invocation's request says that it is repeated.
func (a *actor) saysRepeated() bool {
	return rand.New(rand.NewPCG(a.w.seed, 0x5a75^a.id)).Float64() < 0.6
}

// lookUps sets the options of a guard that looks up repeated requests.
func lookUps(o *lambdaidem.Options) { o.Repeated = lambdaidem.SentAgain }
