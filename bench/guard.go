package main

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// guardResults are measurements of the guard over memstore, each request new.
type guardResults struct {
	call    estimate // nanoseconds, with a body of bodySize
	cost    cost     // of the same
	growth  []growth // of ordinary bodies
	hostile []growth
}

// growth is how the time of a call grows with its input.
type growth struct {
	input       input
	small       int      // units of the smaller input
	large       int      // of the larger one
	nanoseconds float64  // a call with the larger one
	factor      estimate // times the smaller one
}

func (g growth) perUnit() float64 { return g.nanoseconds / float64(g.large) }

// growthFactor is how much larger the large input is than the small one. Up to
// twice that in time counts as linear: what no longer fits a cache or a pool
// costs more for each byte. A quadratic step would take the square.
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
	all.call = bootstrap(5*blocks, func(times []int) float64 { return float64(one.quantile(0.5, times)) }, random)
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

// grow measures calls with a large input, and with a small one.
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

// guardWarmUp is how many blocks don't count.
const guardWarmUp = 3

// guardCalls measures calls with inputs of the sizes, a block of each in turns,
// in random order. It returns the mean time of each block, which the garbage
// collector's share is a part of, by size, and what all calls cost.
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

// calls returns a block of calls with inputs of a size, each with a key of its own,
// to a guard and a store of their own.
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

// input is a kind of request, in any size.
type input struct {
	name   string
	unit   string // bytes, or what else is counted
	large  int    // units of the larger of two inputs
	badKey bool   // the event's own key is refused
	event  func(size int) events.APIGatewayV2HTTPRequest
}
