package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

// scenario is one thing that happens to a guarded function, and the rule by which every
// peer is judged.
type scenario struct {
	name  string // for flags and tables
	title string // what happens, in a few words
	story string // what happens
	rule  string // what must hold, in words
	needs []need // what a peer must have so that the question makes sense
	timed bool   // the play takes seconds, and depends on them
	play  func(*stage) error
	holds func(seen) bool // rule
}

// need is something that not every peer has.
type need string

const (
	needsStore  need = "store"  // the records are in DynamoDB
	needsLease  need = "lease"  // an attempt's right to finish ends at a set time
	needsWait   need = "wait"   // a duplicate can wait for the first attempt
	needsSecret need = "secret" // fingerprints are signed with a secret
)

// The verdicts of a result.
const (
	yes           = "yes"
	no            = "no"
	notApplicable = "n/a"
)

// result is the outcome of one scenario with one peer.
type result struct {
	Verdict  string `json:"verdict"`
	Evidence string `json:"evidence"` // what ran and who received what; for n/a the reason
}

// errTooSlow says that a run took so long that it shows nothing about the peer.
var errTooSlow = errors.New("the machine was too slow for the scenario")

// tries is how often a scenario is played if the machine is too slow for it.
const tries = 5

// judge plays a scenario with a peer, and applies the rule to what was seen.
func (sc scenario) judge(ctx context.Context, p *peer, server *ddblocal.Server) (result, error) {
	for _, n := range sc.needs {
		if reason, lacks := p.lacks[n]; lacks {
			return result{notApplicable, reason}, nil
		}
	}
	for try := 1; ; try++ {
		r, err := sc.once(ctx, p, server)
		if !errors.Is(err, errTooSlow) || try == tries {
			if err != nil {
				err = fmt.Errorf("%s, %s: %w", p.Name, sc.name, err)
			}
			return r, err
		}
	}
}

func (sc scenario) once(ctx context.Context, p *peer, server *ddblocal.Server) (r result, err error) {
	s, err := newStage(ctx, p, server, sc.name)
	defer func() { err = errors.Join(err, s.close()) }()
	if err == nil {
		err = sc.play(s)
	}
	if err == nil && s.faults.slow.Load() {
		err = fmt.Errorf("%w: DynamoDB Local took longer than %v for a request", errTooSlow, mostLatency)
	}
	if err != nil {
		return result{}, err
	}
	o, evidence := s.observe()
	if sc.holds(o) {
		return result{yes, evidence}, nil
	}
	return result{no, evidence}, nil
}

// sleep waits until the time has passed by the clocks of all processes.
func (s *stage) sleep(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}
