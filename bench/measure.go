package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lambdaidem/toolkit/bench/internal/interval"
)

// block performs the operations, atOnce of them at a time. It returns the time of each and the cost
// of all.
func block(ctx context.Context, operations []operation, atOnce int, w *wire) ([]time.Duration, cost, error) {
	took := make([]time.Duration, len(operations))
	before := begin(w)
	err := do(ctx, operations, atOnce, took)
	after := end(w)
	return took, after.since(&before, len(operations)), err
}

func do(ctx context.Context, operations []operation, atOnce int, took []time.Duration) error {
	if atOnce == 1 {
		for i, op := range operations {
			if err := timed(ctx, op, &took[i]); err != nil {
				return err
			}
		}
		return nil
	}
	var (
		next   atomic.Int64
		failed atomic.Pointer[error]
		all    sync.WaitGroup
	)
	for range min(atOnce, len(operations)) {
		all.Go(func() {
			for failed.Load() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(operations) {
					return
				}
				if err := timed(ctx, operations[i], &took[i]); err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

func timed(ctx context.Context, op operation, took *time.Duration) error {
	start := time.Now()
	err := op(ctx)
	*took = time.Since(start)
	return err
}

// plan says how much to measure.
type plan struct {
	atOnce int
	blocks int
	block  int // number of operations in a block, which one side performs before the other takes its turn
	warmUp int // number of blocks of each side that don't count
}

// planFor chooses the size of blocks: short, so that both sides meet the same load of the machine,
// but long enough that starting and ending a block doesn't matter.
func planFor(atOnce, samples int) plan {
	size := 20
	if atOnce > 1 {
		size = 4 * atOnce
	}
	return plan{atOnce: atOnce, blocks: (samples + size - 1) / size, block: size, warmUp: (samples/10 + size - 1) / size}
}

// The two sides of a comparison.
const (
	floorSide = iota
	oursSide
	sides
)

var sideNames = [sides]string{"bare SDK", "toolkit"}

// comparison has the measurements of one scenario. Block i of one side ran next to block i of the
// other.
type comparison struct {
	scenario scenario
	plan     plan
	took     [sides]series
	cost     [sides]cost

	median, p99 interval.Estimate // ours / floor
}

// compare measures a scenario. The two sides take turns, block by block, in random order.
func (r *rig) compare(ctx context.Context, s scenario, p plan, random *rand.Rand) (comparison, error) {
	c := comparison{scenario: s, plan: p}
	prepare := [sides]func(*rig, int) operation{s.floor, s.ours}
	var took [sides][][]time.Duration
	for i := -p.warmUp; i < p.blocks; i++ {
		first := random.IntN(sides)
		for _, side := range []int{first, 1 - first} {
			operations := make([]operation, p.block)
			for j := range operations {
				operations[j] = prepare[side](r, (i+p.warmUp)*p.block+j)
			}
			times, spent, err := block(ctx, operations, p.atOnce, r.wires[side])
			if err != nil {
				return c, fmt.Errorf("%s, %s: %w", s.name, s.side(side), err)
			}
			if i >= 0 {
				took[side] = append(took[side], times)
				c.cost[side] = c.cost[side].plus(spent)
			}
		}
	}
	for side := range sides {
		c.took[side] = newSeries(took[side])
	}
	c.median = ratio(c.took[floorSide], c.took[oursSide], p.blocks, 0.5, random)
	c.p99 = ratio(c.took[floorSide], c.took[oursSide], p.blocks, 0.99, random)
	return c, nil
}
