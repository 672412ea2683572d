package simulator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// stepNames are the steps that a run takes, in this order. Each step calls another service, with
// its own downstream key.
var stepNames = []string{"reserve", "notify"}

// newSteps decides whether the handlers of a plan take steps. It draws from a random
// stream of its own, so that the rest of each plan does not depend on it.
func newSteps(seed uint64, p *plan) {
	r := rand.New(rand.NewPCG(seed, 0x57e95))
	p.steps = p.effects.optimistic < 1 && r.Float64() < 0.25
}

// call is a call to another service, in a step.
type call struct {
	record, name string
}

// step is a step's result, as a record stored it.
type step struct {
	text string
	at   time.Time
	by   *actor
}

// takeSteps takes the run's steps. If one of them fails, takeSteps records that the run ends, and
// returns the error.
func (a *actor) takeSteps(ctx context.Context, r *run) error {
	for _, name := range stepNames {
		got, err := lambdaidem.Step(ctx, name, func(ctx context.Context) (string, error) {
			if !a.sleep(ctx, time.Duration(a.rng.Int64N(int64(20*time.Millisecond)))) {
				return "", ctx.Err()
			}
			key := lambdaidem.DownstreamKey(ctx, name)
			if m := a.w.mut; m != nil && m.Key != nil && key != "" {
				key = m.Key(key, r)
			}
			a.w.journal.stepRuns(r, name, key)
			return r.stepText(name), nil
		})
		if err != nil {
			a.w.journal.endRun(a, stepEnding(err))
			return fmt.Errorf("step %s: %w", name, err)
		}
		a.w.journal.stepResult(r, name, got)
	}
	return nil
}

func stepEnding(err error) Ending {
	switch {
	case errors.Is(err, lambdaidem.ErrOutcomeUnknown):
		return StepUnknown
	case errors.Is(err, lambdaidem.ErrLeaseLost):
		return StepLost
	default:
		return StepRefused
	}
}

// stepText returns a step's result. It names the record and the run, so that the checks notice if
// a run gets another one's result.
func (r *run) stepText(name string) string { return name + " for " + r.answer() }

// stepRuns records that a step's function runs.
func (b *journal) stepRuns(r *run, name, key string) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	if r.actor.dead {
		return
	}
	b.noteLocked(r.actor, "step %s runs", name)
	b.paths[StepRuns]++
	b.judge.stepRuns(r, name, key)
}

// stepResult records what a step returned.
func (b *journal) stepResult(r *run, name, text string) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	if r.actor.dead {
		return
	}
	if text != r.stepText(name) {
		b.paths[StepRead]++
		b.noteLocked(r.actor, "step %s was stored: %s", name, text)
	}
	b.judge.stepResult(r, name, text)
}

// keepSteps records the steps that the item has after a write.
func (l *life) keepSteps(a *actor, w memdynamo.Write) {
	for name, v := range w.After["steps"].Map {
		if _, ok := l.steps[name]; !ok {
			l.steps[name] = step{text: strings.Trim(v.Text, `"`), at: time.Now(), by: a}
		}
	}
}

// lifeOf returns the latest life of the actor's record in which the actor had the lease. It returns
// nil if the actor never had it.
func (b *journal) lifeOf(a *actor) *life {
	h := b.historyOf(a.order)
	if h == nil {
		return nil
	}
	for _, l := range slices.Backward(h.lives) {
		for _, holder := range l.tokens {
			if holder == a {
				return l
			}
		}
	}
	return nil
}

// lastLife returns the last life of an actor's record, or nil if there never was a record.
func (b *journal) lastLife(a *actor) *life {
	if h := b.historyOf(a.order); h != nil && len(h.lives) > 0 {
		return h.lives[len(h.lives)-1]
	}
	return nil
}
