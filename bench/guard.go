package main

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/bench/internal/interval"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// guardResults has the measurements of the guard with memstore. All requests are new.
type guardResults struct {
	call    interval.Estimate // nanoseconds of a call with a body of bodySize
	cost    cost              // of the same calls
	growth  []growth          // for ordinary bodies
	hostile []growth
}

// growth says how the time of a call grows with the size of its input.
type growth struct {
	input       input
	small       int               // size of the smaller input, in units of input.unit
	large       int               // size of the larger input
	nanoseconds float64           // median time of a call with the larger input
	factor      interval.Estimate // time with the larger input divided by the time with the smaller one
}

func (g growth) perUnit() float64 { return g.nanoseconds / float64(g.large) }

// growthFactor is the size of the larger input divided by that of the smaller one. Up to twice this
// factor in time counts as linear, because inputs that no longer fit into a cache or a pool cost
// more for each byte. An algorithm that takes quadratic time would take the square of the factor.
const (
	growthFactor = 16
	aimFactor    = 2 * growthFactor
)

func measureGuard(ctx context.Context, blocks int, random *mathrand.Rand) (*guardResults, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	var all guardResults
	progress("the guard alone, a body of %d bytes", bodySize)
	times, spent, err := guardCalls(ctx, ordinaryBody, []int{bodySize}, 5*blocks, random)
	if err != nil {
		return nil, err
	}
	one := newSeries(times[0])
	all.cost = spent
	all.call = interval.Bootstrap(5*blocks, func(times []int) float64 { return float64(one.quantile(0.5, times)) }, random)
	for size := growthFactor * bodySize; size <= largeBody; size *= 4 {
		g, err := grow(ctx, ordinaryBody, size, blocks, random)
		if err != nil {
			return nil, err
		}
		all.growth = append(all.growth, g)
	}
	for _, in := range hostile {
		g, err := grow(ctx, in, in.large, blocks, random)
		if err != nil {
			return nil, err
		}
		all.hostile = append(all.hostile, g)
	}
	return &all, nil
}

// grow measures calls with a large and with a small input.
func grow(ctx context.Context, in input, large, blocks int, random *mathrand.Rand) (growth, error) {
	small := large / growthFactor
	progress("the guard alone, %s: %d and %d %s", in.name, small, large, in.unit)
	times, _, err := guardCalls(ctx, in, []int{small, large}, blocks, random)
	if err != nil {
		return growth{}, err
	}
	a, b := newSeries(times[0]), newSeries(times[1])
	return growth{
		input: in, small: small, large: large,
		nanoseconds: float64(b.quantile(0.5, nil)),
		factor:      ratio(a, b, blocks, 0.5, random),
	}, nil
}

// guardWarmUp is the number of blocks at the start that don't count.
const guardWarmUp = 3

// guardCalls measures calls with inputs of each size, in blocks that alternate in random order. It
// returns, by size, the mean time of each block, which includes its share of garbage collection,
// and the cost of all calls together.
func guardCalls(ctx context.Context, in input, sizes []int, blocks int, random *mathrand.Rand) ([][][]time.Duration, cost, error) {
	means, spent := make([][][]time.Duration, len(sizes)), cost{}
	for i := -guardWarmUp; i < blocks; i++ {
		for _, s := range random.Perm(len(sizes)) {
			took, c, err := block(ctx, in.calls(sizes[s]), 1, nil)
			if err != nil {
				return nil, cost{}, fmt.Errorf("the guard alone, %s, %d %s: %w", in.name, sizes[s], in.unit, err)
			}
			if i >= 0 {
				means[s] = append(means[s], []time.Duration{mean(took)})
				spent = spent.plus(c)
			}
		}
	}
	return means, spent, nil
}

func mean(took []time.Duration) time.Duration {
	var sum time.Duration
	for _, t := range took {
		sum += t
	}
	return sum / time.Duration(max(len(took), 1))
}

// calls returns a block of calls with inputs of the given size. Each call has a new key, and the
// block has a new guard and a new store.
func (in input) calls(size int) []operation {
	guarded := lambdaidem.New(memstore.New(), quietly).APIGatewayV2(create)
	sample := in.event(size)
	calls := make([]operation, min(max(largeBody/(len(sample.Body)+1), 1), 500))
	for i := range calls {
		e := sample
		e.Headers = make(map[string]string, len(sample.Headers))
		for name, value := range sample.Headers {
			e.Headers[name] = value
		}
		status := http.StatusBadRequest
		if !in.badKey {
			e.Headers["idempotency-key"], status = rand.Text(), http.StatusCreated
		}
		calls[i] = func(ctx context.Context) error { return send(ctx, guarded, e, status, false) }
	}
	return calls
}

// input is a kind of request that can be made in any size.
type input struct {
	name   string
	unit   string // what the size counts, such as bytes
	large  int    // size of the larger of the two inputs
	badKey bool   // the key of the event is invalid, so the guard rejects it
	event  func(size int) events.APIGatewayV2HTTPRequest
}
