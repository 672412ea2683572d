package main

import "testing"

func TestFlags(t *testing.T) {
	s, err := parseFlags([]string{"-peer", "idemkit", "-scenario", "retry"})
	if want := (settings{rounds: 1000, peer: "idemkit", scenario: "retry"}); err != nil || s != want {
		t.Errorf("the settings are %+v, %v; want %+v", s, err, want)
	}
	if s, err = parseFlags([]string{"-time", "-write", "-rounds", "100"}); err != nil || s != (settings{write: true, time: true, rounds: 100}) {
		t.Errorf("the settings are %+v, %v", s, err)
	}
	for _, args := range [][]string{
		{"more"}, {"-unknown"}, {"-peer", "nobody"}, {"-scenario", "none"}, {"-rounds", "99"},
		{"-time", "-peer", "idemkit"}, {"-time", "-scenario", "retry"}, {"-write", "-peer", "idemkit"}, {"-write", "-scenario", "retry"},
	} {
		if s, err := parseFlags(args); err == nil {
			t.Errorf("%q is accepted as %+v", args, s)
		}
	}
}
