package main

import (
	"fmt"

	"github.com/lambdaidem/toolkit/bench/internal/svg"
)

// The dimensions of the plot, in pixels.
const (
	plotWidth = 900
	plotLeft  = 190
	plotRight = 90
	plotTop   = 70
	barHeight = 16
	barGap    = 6
	groupGap  = 34
)

// plot returns an SVG image with medians as bars and 99th percentiles as marks. Equal timings give
// equal bytes.
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
	const title = "Time of a request in one process, over DynamoDB Local"
	image := svg.New(plotWidth, height, title)
	say := image.Add
	say(`<text x="20" y="26" font-size="16" font-weight="bold">%s</text>`, title)
	say(`<text x="20" y="46">bar and first figure: median; mark and second figure: 99th percentile; in milliseconds</text>`)
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
			say(`<text x="%.1f" y="%d" font-size="11">%s</text>`, plotLeft+across(one.P99US)+6, y+12, fmt.Sprintf("%.2f · %.2f", float64(one.MedianUS)/1000, float64(one.P99US)/1000))
		}
	}
	return image.Bytes()
}
