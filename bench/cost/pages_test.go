//go:build !race

// With the race detector, these tests take minutes for megabytes of JSON, and nothing here is
// concurrent. Run them with make test-without-race.

package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/bench/internal/table"
	"github.com/lambdaidem/toolkit/dynamostore"
)

// computed returns the whole study, computed by AWS's rule. It is computed only once for all tests.
func computed(t *testing.T) study {
	t.Helper()
	s, err := whole()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var whole = sync.OnceValues(func() (study, error) {
	ctx := context.Background()
	r, err := inMemory(ctx)
	if err != nil {
		return study{}, err
	}
	return r.conduct(ctx)
})

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile("../../" + path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

const mend = "run make bench-cost ARGS=-write, and copy the short table into dynamostore/doc.go"

// The pages show the figures that the code gives now.
func TestCost_PagesHaveTheComputedFigures(t *testing.T) {
	s := computed(t)
	page := read(t, "docs/cost.md")
	fresh, err := table.Insert(page, "cost", s.markdown(published))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(page), string(fresh)); diff != "" {
		t.Errorf("docs/cost.md (-) has other figures than the code (+); %s:\n%s", mend, diff)
	}
	if !bytes.Equal(read(t, "docs/cost.svg"), s.plot(published)) {
		t.Errorf("docs/cost.svg shows other figures than the code has; %s", mend)
	}
	if short := s.short(published); !strings.Contains(string(read(t, "dynamostore/doc.go")), short) {
		t.Errorf("dynamostore/doc.go lacks this table; %s:\n%s", mend, short)
	}
}

// If one of 20 requests is a replay, the defaults are close to the cheapest layout for every size
// of answer.
func TestCost_DefaultsAreNearTheCheapestAtFivePercent(t *testing.T) {
	s := computed(t)
	if n := s.nearness(published, 0.05); n.factor > 1.05 || n.above > n.of/10 {
		t.Errorf("the defaults are dearer than another layout for %d of %d answers, at the worst by a factor of %.3f (%s of %d bytes)",
			n.above, n.of, n.factor, n.content.name, n.size)
	}
	// Check that the layouts differ at all: each layout except the defaults is at least a tenth
	// more expensive for some size, or can't store some answer.
	for j, l := range layouts[:byDefault] {
		worst := 1.0
		for _, curve := range s.curves {
			for _, one := range curve {
				if !one.by[j].fits {
					worst = 2
				} else {
					worst = max(worst, published.million(one.by[j], 0.05)/published.least(one.by, 0.05))
				}
			}
		}
		if worst < 1.1 {
			t.Errorf("%s is never more than a factor of %.3f dearer", l.name, worst)
		}
	}
}

// Over answers from 1 KB to 128 KB together, other thresholds save at most 2 percent.
func TestCost_ThresholdsAreNearTheMinimumAtFivePercent(t *testing.T) {
	r, err := inMemory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Give every size the same weight by adding up the prices per byte.
	sum := func(set func(*dynamostore.Options)) (sum float64) {
		for _, c := range contents {
			for _, size := range steps(1<<10, 128<<10, 12) {
				f, err := r.measure(t.Context(), layout{set: set}, silent, c.answer(size))
				if err != nil {
					t.Fatal(err)
				}
				sum += published.million(f, 0.05) / float64(size)
			}
		}
		return sum
	}
	byDefault := sum(func(*dynamostore.Options) {})
	compare := func(name string, threshold int, set func(*dynamostore.Options)) {
		ratio := sum(set) / byDefault
		t.Logf("%s of %d bytes costs %.4f of what the defaults cost", name, threshold, ratio)
		if ratio < 0.98 {
			t.Errorf("%s of %d bytes costs %.4f of what the defaults cost", name, threshold, ratio)
		}
	}
	for _, n := range []int{4 << 10, 12 << 10, 16 << 10, 24 << 10, 32 << 10, 64 << 10} {
		compare("MaxInline", n, func(o *dynamostore.Options) { o.MaxInline = n })
	}
	for _, n := range []int{1, 1 << 10, 3 << 9, 3 << 10, 4 << 10, 8 << 10} {
		compare("CompressFrom", n, func(o *dynamostore.Options) { o.CompressFrom = n })
	}
}

// With the defaults, no replay costs the refused write of a large item.
func TestCost_NoReplayCostsALargeRefusedWrite(t *testing.T) {
	s := computed(t)
	for _, of := range append(s.curves, s.rows) {
		for _, one := range of {
			if f := one.by[byDefault]; f.replay.refused > s.largest.refused {
				t.Errorf("%s of %d bytes: a replay costs %v write units; the dearest that was found is %v", one.content.name, one.size, f.replay.refused, s.largest.refused)
			}
		}
	}
	l := s.largest
	if l.refused != 21 || l.withMost > 24 || l.oneRead != 65 {
		t.Errorf("the dearest replays: %+v", l)
	}
	if perSecond := partitionWrites / l.refused; perSecond < 40 {
		t.Errorf("%.1f replays a second of one key fit a partition", perSecond)
	}
	if perSecond := partitionReads / l.oneRead; perSecond < 40 {
		t.Errorf("%.1f reads a second of one part fit a partition", perSecond)
	}
	if l.inline < 380 { // the cost that the thresholds avoid
		t.Errorf("inline the dearest costs %v", l.inline)
	}
}
