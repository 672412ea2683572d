package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

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

// once plays the scenario one time. The error is errTooSlow if the machine was too slow.
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
