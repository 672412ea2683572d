package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The committed timings and their plot, seen from the project's folder.
const (
	timingsFile = sources + "/timings.json"
	plotFile    = "docs/scoreboard.svg"
)

// timings are the results of one measurement.
type timings struct {
	Date     string                       `json:"date"` // of the run, as 2026-11-26
	Versions map[string]string            `json:"versions"`
	Rounds   int                          `json:"rounds"`
	Order    []string                     `json:"order"`   // the peers' names
	Results  map[string]map[string]timing `json:"results"` // by the operation, then the peer's name
}

func newTimings(all []*peer, rounds int) timings {
	b := newScoreboard(all)
	return timings{Date: time.Now().UTC().Format(time.DateOnly), Versions: b.Versions, Rounds: rounds, Results: map[string]map[string]timing{}}
}

func (t *timings) set(op, peer string, one timing) {
	if t.Results[op] == nil {
		t.Results[op] = map[string]timing{}
	}
	t.Results[op][peer] = one
	if op == operations[0] {
		t.Order = append(t.Order, peer)
	}
}

func readTimings(root string) (timings, error) {
	var t timings
	text, err := os.ReadFile(filepath.Join(root, timingsFile))
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	return t, err
}

// write writes the timings, their table and their plot.
func (t *timings) write(root string) error {
	text, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	page, err := os.ReadFile(filepath.Join(root, pageFile))
	if err != nil {
		return err
	}
	if page, err = timingsPlace.fill(page, t.markdown()); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(root, timingsFile), append(text, '\n'), 0o644),
		os.WriteFile(filepath.Join(root, plotFile), t.plot(), 0o644),
		os.WriteFile(filepath.Join(root, pageFile), page, 0o644),
	)
}

// markdown returns the table of the timings.
func (t *timings) markdown() string {
	var b strings.Builder
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(&b, format+"\n", args...) }
	say("Measured on %s, %d times each.\n", t.Date, t.Rounds)
	say("| request | utility | median | 99th percentile | CPU | requests to DynamoDB | write units | read units |")
	say("|---|---|---|---|---|---|---|---|")
	for _, op := range operations {
		for _, name := range t.Order {
			one := t.Results[op][name]
			say("| %s | %s | %s | %s | %s | %d | %s | %s |", op, name, milli(one.MedianUS), milli(one.P99US), milli(one.CPUUS),
				one.Requests, number(one.Writes), number(one.Reads))
		}
	}
	return b.String()
}

// milli returns microseconds as milliseconds.
func milli(us int64) string { return fmt.Sprintf("%.2f ms", float64(us)/1000) }

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
