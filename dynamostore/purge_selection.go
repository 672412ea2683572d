package dynamostore

import (
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// shouldPurge counts a record that Match selected, and reports whether the purge changes
// it.
func (p *purge) shouldPurge(it *item, clock Inspected) bool {
	do := false
	p.count(func(sum *PurgeProgress) {
		erasesSteps := p.erasesSteps(it, clock)
		forgets := p.opts.Forget && it.Status == lambdaidem.Released
		completes := len(it.Steps) > 0 && (erasesSteps || forgets) // the record gets the failure lambdaidem.NoAnswer
		if len(it.Steps) > 0 && !completes {
			sum.KeptSteps++
		}
		if it.Status == lambdaidem.Released && it.Bound == lambdaidem.BoundByInnerCall && !completes {
			sum.InnerCalls++
		}
		switch {
		case erasesSteps:
			sum.Matched++
			if it.Status == lambdaidem.InProgress {
				sum.Undecided++
			}
			if p.opts.DryRun && p.onlyErasesSteps(it, clock) {
				sum.OnlyErased++
			}
			do = !p.opts.DryRun
		case it.Status == lambdaidem.InProgress:
			sum.InProgress++
		case it.Status == lambdaidem.Released && !p.opts.Forget:
		case p.isDone(it, clock.At()):
			sum.Matched++
			sum.Before++
		default:
			sum.Matched++
			do = !p.opts.DryRun
		}
	})
	return do
}

// isDone reports whether an earlier purge has already done everything to the record that
// this purge would do.
func (p *purge) isDone(it *item, now time.Time) bool {
	if p.opts.Forget {
		return p.wasForgotten(it, now) && it.Erasing == nil
	}
	return it.isErased() && it.Erasing == nil
}
