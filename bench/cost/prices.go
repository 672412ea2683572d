package main

import (
	"math"
)

// prices has the dollars for a million write units and a million read units, and the source of
// these prices.
type prices struct {
	write, read float64
	source      string
}

// million returns the price of a million requests in dollars, if the share replays of them are
// replays. It does not include storage or conflicts.
func (p prices) million(f figures, replays float64) float64 {
	return (1-replays)*p.of(f.first) + replays*p.of(f.replay)
}

// of returns the price of a million requests that consume u each.
func (p prices) of(u units) float64 { return p.write*(u.write+u.refused) + p.read*u.read }

// least returns the price in the cheapest layout that can store the answer.
func (p prices) least(by []figures, replays float64) float64 {
	least := math.Inf(1)
	for _, f := range by {
		if f.fits {
			least = min(least, p.million(f, replays))
		}
	}
	return least
}

// nearness says how close the defaults are to the cheapest layout, over all sizes and contents of
// the plot.
type nearness struct {
	factor  float64 // how many times as expensive the defaults are, in the worst case
	size    int
	content content
	above   int // number of answers for which another layout is cheaper
	of      int
}

func (s study) nearness(p prices, replays float64) nearness {
	n := nearness{factor: 1}
	for _, curve := range s.curves {
		for _, one := range curve {
			n.of++
			factor := p.million(one.by[byDefault], replays) / p.least(one.by, replays)
			if factor > 1 {
				n.above++
			}
			if factor > n.factor {
				n.factor, n.size, n.content = factor, one.size, one.content
			}
		}
	}
	return n
}
