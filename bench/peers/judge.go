package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

// scenario is a course of events for a guarded function, and the rule by which every peer is judged.
type scenario struct {
	name  string // for flags and tables
	title string // what happens, as a heading
	story string // what happens, in sentences
	rule  string // what must hold, in sentences
	needs []need // features without which the scenario doesn't apply to a peer
	timed bool   // the play waits for seconds, and its outcome depends on their length
	play  func(*stage) error
	holds func(seen) bool // reports whether the rule holds
}

// need is a feature that not every peer has.
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
	Evidence string `json:"evidence"` // how often the handler ran and what each caller received; with n/a, the reason
}

// errTooSlow means that a run took too long to say anything about the peer.
var errTooSlow = errors.New("the machine was too slow for the scenario")

// tries is the maximum number of times that a scenario is played while the machine is too slow.
const tries = 5

// judge plays the scenario with a peer, and applies the rule to what it has seen.
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

// sleep waits for the time d, or until the stage's context is done.
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
