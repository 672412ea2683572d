package main

import (
	"path/filepath"
	"testing"
	"time"
)

// The process's share of a core is less while it lasts, and its own again after it.
func TestSmallFunctionsAreMeasured(t *testing.T) {
	leave, err := asInLambda(128)
	if err != nil {
		t.Skip("there is no right to limit processor time here:", err)
	}
	limited, v2, err := ownCgroup()
	if err != nil {
		t.Fatal(err)
	}
	if err := leave(); err != nil {
		t.Fatal(err)
	}
	after, _, err := ownCgroup()
	if err != nil || after != filepath.Dir(limited) {
		t.Errorf("the process is in %s, %v; want it back in %s", after, err, filepath.Dir(limited))
	}
	t.Logf("version 2: %v", v2)

	took := [][sides]time.Duration{{floorSide: 50 * time.Millisecond, oursSide: 25 * time.Millisecond}, {floorSide: 50 * time.Millisecond, oursSide: 25 * time.Millisecond}}
	if got, want := smallOf(128, "new", took, fixed()), (small{128, "new", [sides]time.Duration{2 * time.Millisecond, time.Millisecond}, estimate{0.5, 0.5, 0.5}}); got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
}
