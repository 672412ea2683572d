package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/lambdaidem/toolkit/bench/internal/interval"
	"github.com/lambdaidem/toolkit/bench/internal/svg"
)

// The paths of the published page and of its plot, from the project's folder.
const (
	pageFile = "docs/performance.md"
	plotFile = "docs/performance.svg"
)

// writePlot draws the ratios on the published page. It reads them from the page's table, so that
// the plot shows the same measurement as the table.
func writePlot() error {
	page, err := os.ReadFile(pageFile)
	if err != nil {
		return err
	}
	all, err := publishedRatios(page)
	if err != nil {
		return fmt.Errorf("%s: %w", pageFile, err)
	}
	return os.WriteFile(plotFile, plotRatios(all), 0o644)
}

// published is one row of the page's table of ratios.
type published struct {
	scenario string
	atOnce   string            // number of requests at once
	median   interval.Estimate // the toolkit's median divided by the bare SDK's
	aim      float64           // the maximum that the median should be; 0 if there is no aim
}

// publishedRatios returns the rows of the table that results.ratios makes.
func publishedRatios(page []byte) (all []published, err error) {
	_, table, found := bytes.Cut(page, []byte("\n| scenario | at once | samples | median |"))
	if !found {
		return nil, errors.New("the page has no table of ratios")
	}
	table, _, _ = bytes.Cut(table, []byte("\n\n"))
	lines := strings.Split(strings.TrimSpace(string(table)), "\n")
	for _, line := range lines[min(2, len(lines)):] { // after the rest of the heading and the line below it
		cells := strings.Split(line, " | ")
		if len(cells) < 5 {
			return nil, fmt.Errorf("%q is no row of the table of ratios", line)
		}
		p := published{scenario: strings.TrimPrefix(cells[0], "| "), atOnce: cells[1]}
		if _, err := fmt.Sscanf(cells[3], "%f (%f–%f)", &p.median.Value, &p.median.Low, &p.median.High); err != nil {
			return nil, fmt.Errorf("the median of %s is %q: %w", p.scenario, cells[3], err)
		}
		if aim := cells[4]; aim != "" {
			if _, err := fmt.Sscanf(aim, "≤ %f:", &p.aim); err != nil {
				return nil, fmt.Errorf("the aim of %s is %q: %w", p.scenario, aim, err)
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// The dimensions of the plot, in pixels.
const (
	plotWidth = 900
	plotLeft  = 190
	plotRight = 150
	plotTop   = 76
	rowHeight = 20
	groupGap  = 40
)

// plotRatios returns an SVG image. Each ratio is a dot on a line, which is its confidence interval.
// Equal ratios give equal bytes.
func plotRatios(all []published) []byte {
	largest := 1.0
	groups := 0
	for i, p := range all {
		largest = max(largest, p.median.High, p.aim)
		if i == 0 || p.atOnce != all[i-1].atOnce {
			groups++
		}
	}
	largest = math.Ceil(largest*10) / 10
	across := func(ratio float64) string {
		return fmt.Sprintf("%.1f", plotLeft+ratio/largest*(plotWidth-plotLeft-plotRight))
	}
	height := plotTop + groups*groupGap + len(all)*rowHeight
	image := svg.New(plotWidth, height, "Time of a request: the toolkit's median divided by the bare SDK's")
	say := image.Add
	say(`<text x="20" y="26" font-size="16" font-weight="bold">Time of a request: the toolkit's median divided by the bare SDK's</text>`)
	say(`<text x="20" y="46">dot and line: the ratio and its 95 %% confidence interval; red mark: the most that it should be; less is faster</text>`)
	for tick := 0.0; tick <= largest+0.01; tick += 0.2 {
		colour := "#e4e4e4"
		if math.Abs(tick-1) < 0.01 {
			colour = "#222" // the bare SDK
		}
		say(`<path d="M%s %dV%d" stroke="%s"/>`, across(tick), plotTop, height-10, colour)
		say(`<text x="%s" y="%d" text-anchor="middle" font-size="11">%.1f</text>`, across(tick), plotTop-6, tick)
	}
	y := plotTop
	for i, p := range all {
		if i == 0 || p.atOnce != all[i-1].atOnce {
			y += groupGap
			say(`<text x="20" y="%d" font-weight="bold">%s at once</text>`, y-rowHeight+4, p.atOnce)
		}
		say(`<text x="%d" y="%d" text-anchor="end">%s</text>`, plotLeft-8, y+4, p.scenario)
		say(`<path d="M%s %dH%s" stroke="#14508c" stroke-width="2"/>`, across(p.median.Low), y, across(p.median.High))
		say(`<circle cx="%s" cy="%d" r="4" fill="#14508c"/>`, across(p.median.Value), y)
		if p.aim > 0 {
			say(`<path d="M%s %dv12" stroke="#b03a1e" stroke-width="2"/>`, across(p.aim), y-6)
		}
		say(`<text x="%d" y="%d" font-size="11">%s</text>`, plotWidth-plotRight+10, y+4, p.median)
		y += rowHeight
	}
	return image.Bytes()
}
