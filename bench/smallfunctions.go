package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lambdaidem/toolkit/bench/internal/interval"
	"github.com/lambdaidem/toolkit/bench/internal/quota"
	"github.com/lambdaidem/toolkit/bench/internal/table"
)

// functionSizes has the memory, in MB, of the functions whose share of a core is imitated.
var functionSizes = []int{128, 512}

// The number of blocks and the operations in each: enough that the periods of the quota average
// out.
const (
	smallBlocks = 20
	smallBlock  = 25
)

const smallScenario = "small functions" // the name by which -scenario selects them

// small has the measurements of a scenario with the processor time of a small function.
type small struct {
	megabytes int
	scenario  string
	each      [sides]time.Duration // average time of one operation
	ratio     interval.Estimate    // ours / floor
}

// measureSmall measures new requests and replays, one at a time, with the processor time of
// functions of each size. The database is another process, so it is not limited. If processor time
// can't be limited, unmeasured has the reason.
func (r *rig) measureSmall(ctx context.Context, random *rand.Rand) (all []small, unmeasured, err error) {
	for _, megabytes := range functionSizes {
		for _, name := range []string{"new", "replay"} {
			progress("%s as in a function of %d MB: %d times each side", name, megabytes, smallBlocks*smallBlock)
			leave, err := quota.Limit(megabytes)
			if err != nil {
				return nil, fmt.Errorf("no processor quota can be had here: %w", err), nil
			}
			took, err := r.turns(ctx, scenarioOf(name), random)
			if err = errors.Join(err, leave()); err != nil {
				return nil, nil, err
			}
			all = append(all, smallOf(megabytes, name, took, random))
		}
	}
	return all, nil, nil
}

func scenarioOf(name string) scenario {
	return scenarios[slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })]
}

// turns lets both sides take turns, and returns the time of each block.
func (r *rig) turns(ctx context.Context, s scenario, random *rand.Rand) ([][sides]time.Duration, error) {
	took := make([][sides]time.Duration, smallBlocks)
	prepare := [sides]func(*rig, int) operation{s.floor, s.ours}
	for i := -1; i < smallBlocks; i++ { // the first block does not count
		for _, side := range random.Perm(sides) {
			operations := make([]operation, smallBlock)
			for j := range operations {
				operations[j] = prepare[side](r, (i+1)*smallBlock+j)
			}
			began := time.Now()
			if err := do(ctx, operations, 1, make([]time.Duration, smallBlock)); err != nil {
				return nil, fmt.Errorf("%s, %s: %w", s.name, s.side(side), err)
			}
			if i >= 0 {
				took[i][side] = time.Since(began)
			}
		}
	}
	return took, nil
}

func smallOf(megabytes int, name string, took [][sides]time.Duration, random *rand.Rand) small {
	sum := func(side int, times []int) (all time.Duration) {
		for i, block := range took {
			all += block[side] * time.Duration(count(times, i))
		}
		return all
	}
	one := small{megabytes: megabytes, scenario: name}
	for side := range sides {
		one.each[side] = sum(side, nil) / time.Duration(len(took)*smallBlock)
	}
	one.ratio = interval.Bootstrap(len(took), func(times []int) float64 { return float64(sum(oursSide, times)) / float64(sum(floorSide, times)) }, random)
	return one
}

func smallTable(all []small) table.Table {
	t := table.Table{{"with the processor time of", "scenario", "bare SDK, on average", "toolkit", "toolkit : bare SDK"}}
	for _, s := range all {
		t = append(t, []string{
			fmt.Sprintf("%d MB", s.megabytes), s.scenario, micros(float64(s.each[floorSide])), micros(float64(s.each[oursSide])), s.ratio.String(),
		})
	}
	return t
}
