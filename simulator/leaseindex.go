package simulator

import (
	"math/rand/v2"

	"github.com/lambdaidem/toolkit/dynamostore"
)

// This file simulates the index in which operators find dead leases. Nothing reads the index here.
// The checks look at the attribute that puts a record into the index.

// leaseIndex says which processes write the index.
type leaseIndex int

// The processes with the index.
const (
	none leaseIndex = iota
	all
	some // every second process, as during a deployment or a rollback
)

// newLeaseIndex decides which processes of a plan write the index. It draws from a
// random stream of its own, so that the rest of each plan does not depend on it.
func newLeaseIndex(seed uint64, p *plan) {
	p.leaseIndex = []leaseIndex{none, none, all, some}[rand.New(rand.NewPCG(seed, 0x1ea5e)).IntN(4)]
}

// indexes reports whether the process writes the index.
func (a *actor) indexes() bool {
	switch a.w.plan.leaseIndex {
	case all:
		return true
	case some:
		return a.starter().id%2 == 0
	default:
		return false
	}
}

func (a *actor) leaseIndex(o *dynamostore.Options) {
	if a.indexes() {
		o.LeaseIndex, o.LeaseShards = "leases", 5
	}
}
