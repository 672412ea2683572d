package dynamostore

import (
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// shouldPurge reports whether the purge must change itm, a record that PurgeOptions.Match selected.
// It also counts the record in PurgeProgress. In a dry run, it always returns false.
func (p *purge) shouldPurge(itm *item, clock databaseClock) bool {
	do := false
	p.count(func(sum *PurgeProgress) {
		erasesSteps := p.erasesSteps(itm, clock)
		forgets := p.opts.Forget && itm.Status == lambdaidem.Released
		completes := len(itm.Steps) > 0 && (erasesSteps || forgets) // the record gets the failure lambdaidem.NoAnswer
		if len(itm.Steps) > 0 && !completes {
			sum.KeptSteps++
		}
		if itm.Status == lambdaidem.Released && itm.Bound == lambdaidem.BoundByInnerCall && !completes {
			sum.InnerCalls++
		}
		switch {
		case erasesSteps:
			sum.Matched++
			if itm.Status == lambdaidem.InProgress {
				sum.Undecided++
			}
			if p.opts.DryRun && p.leavesForgetUndone(itm, clock) {
				sum.OnlyErased++
			}
			do = !p.opts.DryRun
		case itm.Status == lambdaidem.InProgress:
			sum.InProgress++
		case itm.Status == lambdaidem.Released && !p.opts.Forget:
		case p.isDone(itm, clock.now()):
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
func (p *purge) isDone(itm *item, now time.Time) bool {
	if p.opts.Forget {
		return p.wasForgotten(itm, now) && itm.Erasing == nil
	}
	return itm.isErased() && itm.Erasing == nil
}
