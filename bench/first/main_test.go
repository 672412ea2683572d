package main

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/bench/internal/table"
)

func TestFlags(t *testing.T) {
	s, err := parseFlags([]string{"-samples", "3", "-markdown"})
	if want := (settings{3, true}); err != nil || s != want {
		t.Errorf("the settings are %+v, %v; want %+v", s, err, want)
	}
	for _, args := range [][]string{{"more"}, {"-unknown"}, {"-samples", "2"}} {
		if s, err := parseFlags(args); err == nil {
			t.Errorf("%q is accepted as %+v", args, s)
		}
	}
}

func TestReport_ComparesMedians(t *testing.T) {
	const ms = time.Millisecond
	c := comparison{roundTrip: 30 * ms, megabytes: 128, took: map[string][]times{
		"bare":    {{First: 100 * ms}, {First: 900 * ms}, {First: 80 * ms}},
		"toolkit": {{First: 50 * ms}, {First: 450 * ms}, {First: 40 * ms}},
		"warm":    {{200 * ms, 25 * ms, 20 * ms}, {900 * ms, 50 * ms, 40 * ms}, {1 * ms, 10 * ms, 8 * ms}},
	}}
	unlimited := c
	unlimited.megabytes = 0
	row := []string{"30ms", "128 MB", "100.0 ms", "50.0 ms", "0.50 (0.50–0.50)", "≤ 1.0: met", "200.0 ms", "25.0 ms", "1.25 (1.25–1.25)", "≤ 1.2: missed"}
	got := report([]comparison{c, unlimited}, rand.New(rand.NewPCG(1, 2)))
	want := table.Table{got[0], row, append([]string{"30ms", "no limit"}, row[2:]...)}
	if diff := cmp.Diff(want, got); diff != "" || len(got[0]) != len(row) {
		t.Errorf("the head has %d cells, a row %d; (-want +got):\n%s", len(got[0]), len(row), diff)
	}
}

// The interval of a ratio is the range of what other samples might give.
func TestRatio_HasAnInterval(t *testing.T) {
	const ms = time.Millisecond
	c := comparison{took: map[string][]times{
		"bare":    {{First: 1 * ms}, {First: 1 * ms}, {First: 1 * ms}, {First: 1 * ms}, {First: 1 * ms}},
		"toolkit": {{First: 1 * ms}, {First: 2 * ms}, {First: 3 * ms}, {First: 4 * ms}, {First: 5 * ms}},
	}}
	if e := c.ratio(cold, sdk, rand.New(rand.NewPCG(1, 2))); e.Value != 3 || e.Low < 1 || e.Low >= 3 || e.High <= 3 || e.High > 5 {
		t.Errorf("the ratio is %v; want 3, in an interval from 1 to 5", e)
	}
}

// The second text leaves while the first one is on its way, and is delayed no longer than the first.
func TestDelay_DelaysEachByteByTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, in := net.Pipe()
		out, server := net.Pipe()
		go delay(out, in, 15*time.Millisecond)
		start := time.Now()
		go func() {
			for _, text := range []string{"ab", "c"} {
				if _, err := io.WriteString(client, text); err != nil {
					t.Error(err)
				}
				time.Sleep(10 * time.Millisecond)
			}
			_ = client.Close()
		}()
		for _, want := range []struct {
			text string
			at   time.Duration
		}{{"ab", 15 * time.Millisecond}, {"c", 25 * time.Millisecond}} {
			b := make([]byte, len(want.text))
			if _, err := io.ReadFull(server, b); err != nil || string(b) != want.text || time.Since(start) != want.at {
				t.Errorf("%q, %v arrives after %v; want %q after %v", b, err, time.Since(start), want.text, want.at)
			}
		}
		if n, err := server.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("after the client has closed its connection, Read = %d, %v; want EOF", n, err)
		}
	})
}
