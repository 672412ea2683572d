package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lambdaidem/toolkit/bench/internal/table"
)

// The paths of the committed timings and of their plot, from the project's folder.
const (
	timingsFile = sources + "/timings.json"
	plotFile    = "docs/scoreboard.svg"
)

// timings has the results of one measurement.
type timings struct {
	Date     string                       `json:"date"` // of the run, as 2026-11-26
	Versions map[string]string            `json:"versions"`
	Rounds   int                          `json:"rounds"`
	Order    []string                     `json:"order"`   // the names of the peers, in the order of the page
	Results  map[string]map[string]timing `json:"results"` // by the operation, then the peer's name
}

func newTimings(all []*peer, rounds int) timings {
	return timings{Date: today(), Versions: versions(all), Rounds: rounds, Results: map[string]map[string]timing{}}
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
	return readJSON[timings](filepath.Join(root, timingsFile))
}

// write writes the timings, their table and their plot.
func (t *timings) write(root string) error {
	err := publish(root, timingsFile, t, func(page []byte) ([]byte, error) { return timingsPlace.fill(page, t.markdown()) })
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, plotFile), t.plot(), 0o644)
}

// markdown returns the table of the timings.
func (t *timings) markdown() string {
	rows := table.Table{{"request", "utility", "median", "99th percentile", "CPU", "requests to DynamoDB", "write units", "read units"}}
	for _, op := range operations {
		for _, name := range t.Order {
			one := t.Results[op][name]
			rows = append(rows, []string{
				op, name, milli(one.MedianUS), milli(one.P99US), milli(one.CPUUS),
				fmt.Sprint(one.Requests), number(one.Writes), number(one.Reads),
			})
		}
	}
	var text strings.Builder
	_, _ = fmt.Fprintf(&text, "Measured on %s, %d times each.\n\n", t.Date, t.Rounds)
	_ = rows.Markdown(&text) // a strings.Builder returns no errors
	return text.String()
}

// milli returns microseconds as milliseconds.
func milli(us int64) string { return fmt.Sprintf("%.2f ms", float64(us)/1000) }

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
