package main

import (
	"testing"
	"time"
)

func TestSmallFunctionsAreMeasured(t *testing.T) {
	took := [][sides]time.Duration{{floorSide: 50 * time.Millisecond, oursSide: 25 * time.Millisecond}, {floorSide: 50 * time.Millisecond, oursSide: 25 * time.Millisecond}}
	if got, want := smallOf(128, "new", took, fixed()), (small{128, "new", [sides]time.Duration{2 * time.Millisecond, time.Millisecond}, between(0.5, 0.5, 0.5)}); got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
}
