package dynamostore

import (
	"context"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// record purges one record. It calls the functions that p.tasks returns, in order. A function
// returns false if the record has changed since it was read. The method record then stops, and
// counts the record in PurgeProgress.Changed.
func (p *purge) record(ctx context.Context, itm *item, clock databaseClock) error {
	for _, task := range p.tasks(itm, clock) {
		if done, err := task(ctx); err != nil || !done {
			if err == nil {
				p.count(func(sum *PurgeProgress) { sum.Changed++ })
			}
			return err
		}
	}
	p.count(func(sum *PurgeProgress) { sum.Purged++ })
	return nil
}

// tasks returns the functions that purge a record, in the order in which the caller must call
// them. Each function sends requests, and returns false if DynamoDB refused a request because the
// record has changed since it was read. The caller must then stop.
func (p *purge) tasks(itm *item, clock databaseClock) (all []func(context.Context) (bool, error)) {
	add := func(task func(context.Context) (bool, error)) { all = append(all, task) }
	switch {
	case p.erasesSteps(itm, clock):
		add(func(ctx context.Context) (bool, error) { return p.eraseSteps(ctx, itm, clock) })
		return all
	case p.opts.Forget && itm.Status == lambdaidem.Released && len(itm.Steps) > 0:
		add(func(ctx context.Context) (bool, error) { return p.forgetSteps(ctx, itm, clock) })
		return all
	}
	hasParts := itm.Erasing != nil || itm.Parts != nil && itm.Parts.Count > 0
	switch {
	case p.opts.Forget && !p.wasForgotten(itm, clock.now()):
		add(func(ctx context.Context) (bool, error) { return p.forget(ctx, itm, clock.latest()) })
	case !p.opts.Forget && !itm.isErased():
		add(func(ctx context.Context) (bool, error) { return p.erase(ctx, itm, clock.now()) })
	}
	// Delete the parts only after the record has lost its answer, so that no reader gets an
	// incomplete answer.
	if hasParts {
		add(func(ctx context.Context) (bool, error) { return true, p.deleteParts(ctx, itm) })
		add(func(ctx context.Context) (bool, error) { return p.removePartList(ctx, itm) })
	}
	return all
}
