package dynamostore

import (
	"context"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// record purges one record. It calls the functions that p.writes returns, in order. A function
// returns false if the record has changed since it was read. The method record then stops, and
// counts the record in PurgeProgress.Changed.
func (p *purge) record(ctx context.Context, it *item, clock Inspected) error {
	for _, write := range p.writes(it, clock) {
		if done, err := write(ctx); err != nil || !done {
			if err == nil {
				p.count(func(sum *PurgeProgress) { sum.Changed++ })
			}
			return err
		}
	}
	p.count(func(sum *PurgeProgress) { sum.Purged++ })
	return nil
}

// writes returns the functions that purge a record. The caller calls them in this
// order. Each function sends requests, and returns false if DynamoDB refused a request because
// the record has changed since it was read. The caller must then stop.
func (p *purge) writes(it *item, clock Inspected) (all []func(context.Context) (bool, error)) {
	add := func(write func(context.Context) (bool, error)) { all = append(all, write) }
	switch {
	case p.erasesSteps(it, clock):
		add(func(ctx context.Context) (bool, error) { return p.eraseSteps(ctx, it, clock) })
		return all
	case p.opts.Forget && it.Status == lambdaidem.Released && len(it.Steps) > 0:
		add(func(ctx context.Context) (bool, error) { return p.forgetSteps(ctx, it, clock) })
		return all
	}
	hasParts := it.Erasing != nil || it.Parts != nil && it.Parts.Count > 0
	switch {
	case p.opts.Forget && !p.wasForgotten(it, clock.At()):
		add(func(ctx context.Context) (bool, error) { return p.forget(ctx, it, clock.latest()) })
	case !p.opts.Forget && !it.isErased():
		add(func(ctx context.Context) (bool, error) { return p.erase(ctx, it, clock.At()) })
	}
	// Delete the parts only after the record has lost its answer, so that no reader gets an
	// incomplete answer.
	if hasParts {
		add(func(ctx context.Context) (bool, error) { return true, p.deleteParts(ctx, it) })
		add(func(ctx context.Context) (bool, error) { return p.removePartList(ctx, it) })
	}
	return all
}
