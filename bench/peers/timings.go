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

// The plot's measures, in pixels.
const (
	plotWidth = 900
	plotLeft  = 190
	plotRight = 90
	plotTop   = 70
	barHeight = 16
	barGap    = 6
	groupGap  = 34
)

// plot draws the medians as bars, and the 99th percentiles as marks, as SVG. The same figures
// are always the same bytes.
func (t *timings) plot() []byte {
	most := int64(1)
	for _, of := range t.Results {
		for _, one := range of {
			most = max(most, one.P99US)
		}
	}
	across := func(us int64) float64 { return float64(us) / float64(most) * (plotWidth - plotLeft - plotRight) }
	group := len(t.Order)*(barHeight+barGap) + groupGap
	height := plotTop + len(operations)*group
	var b strings.Builder
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(&b, format+"\n", args...) }
	const title = "Time of a request in one process, over DynamoDB Local"
	say(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="Helvetica, Arial, sans-serif" font-size="12" fill="#222">`,
		plotWidth, height, plotWidth, height)
	say(`<title>%s</title>`, title)
	say(`<rect width="%d" height="%d" fill="#fff"/>`, plotWidth, height)
	say(`<text x="20" y="26" font-size="16" font-weight="bold">%s</text>`, title)
	say(`<text x="20" y="46">bar: median; mark: 99th percentile</text>`)
	for i, op := range operations {
		top := plotTop + i*group
		say(`<text x="20" y="%d" font-weight="bold">%s</text>`, top+4, op)
		for j, name := range t.Order {
			one := t.Results[op][name]
			y := top + 12 + j*(barHeight+barGap)
			colour := "#b8c4d6"
			if j == 1 { // this toolkit
				colour = "#14508c"
			}
			say(`<text x="%d" y="%d" text-anchor="end">%s</text>`, plotLeft-8, y+12, name)
			say(`<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`, plotLeft, y, across(one.MedianUS), barHeight, colour)
			say(`<path d="M%.1f %dv%d" stroke="#b03a1e" stroke-width="2"/>`, plotLeft+across(one.P99US), y, barHeight)
			say(`<text x="%.1f" y="%d" font-size="11">%s</text>`, plotLeft+across(one.P99US)+6, y+12, milli(one.MedianUS))
		}
	}
	say(`</svg>`)
	return []byte(b.String())
}
