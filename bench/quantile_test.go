package main

import (
	"testing"
	"time"
)

func TestQuantileIsTheNearestRank(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[99-i] = time.Duration(i + 1) // 100 … 1
	}
	for _, c := range []struct {
		times []time.Duration
		q     float64
		want  time.Duration
	}{
		{hundred, 0.5, 50},
		{hundred, 0.99, 99},
		{hundred, 0.991, 100},
		{hundred, 1, 100},
		{hundred, 0, 1},
		{[]time.Duration{7}, 0.99, 7},
		{[]time.Duration{3, 1, 2}, 0.5, 2},
		{nil, 0.5, 0},
	} {
		if got := newSeries([][]time.Duration{c.times}).quantile(c.q, nil); got != c.want {
			t.Errorf("quantile %v of %d samples is %d; want %d", c.q, len(c.times), got, c.want)
		}
	}
}

// A block that is drawn twice counts as if each of its samples occurred twice.
func TestQuantileCountsABlockAsOftenAsItWasDrawn(t *testing.T) {
	blocks := [][]time.Duration{{1, 2}, {10, 20}, {100, 200}}
	for _, c := range []struct {
		times []int
		q     float64
		want  time.Duration
	}{
		{[]int{1, 1, 1}, 0.5, 10},
		{[]int{3, 0, 0}, 1, 2},
		{[]int{0, 0, 3}, 0.5, 100},
		{[]int{0, 0, 3}, 0.51, 200},
		{[]int{2, 0, 1}, 0.5, 2},
	} {
		if got := newSeries(blocks).quantile(c.q, c.times); got != c.want {
			t.Errorf("quantile %v with blocks drawn %v times is %d; want %d", c.q, c.times, got, c.want)
		}
	}
}
