package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/lambdaidem/toolkit/bench/internal/svg"
)

// The dimensions of the plot, in pixels.
const (
	panelWidth   = 290
	priceHeight  = 200
	excessHeight = 90
	gapX         = 66
	gapY         = 52 // between the two panels of one content
	gapContents  = 92
	left, top    = 70, 96
	right        = 20
	bottom       = 58
	oneContent   = priceHeight + gapY + excessHeight
)

// The ranges of the vertical axes. The axis of prices is logarithmic, like those of the sizes.
const (
	leastDollars, mostDollars = 0.5, 10_000
	mostExcess                = 60 // percent
)

var (
	dollarTicks = []float64{1, 10, 100, 1000, 10_000}
	excessTicks = []float64{0, 20, 40, 60}
)

// graph is one line in the panels, and how to draw it.
type graph struct {
	layout       int
	name, colour string
	width        float64
	dashes       string
}

// graphs has the lines of each panel. The defaults come first, as a broad line, so that the line of
// the layout that they choose is visible on top of it.
var graphs = []graph{
	{byDefault, "what the defaults choose", "#b8c4d6", 8, "none"},
	{inlineGzip, "inline: in the record alone, up to 384 KB", "#b03a1e", 1.8, "none"},
	{partsGzip, "parts: in items of their own", "#14508c", 1.8, "6 3"},
}

// plot returns an SVG image. For each content and each share of replays, it has a panel with the
// prices by size, and below it a panel with how much more expensive each layout is than the
// cheapest. Equal figures give equal bytes.
func (s study) plot(p prices) []byte {
	width := left + len(rates)*panelWidth + (len(rates)-1)*gapX + right
	height := top + len(contents)*oneContent + (len(contents)-1)*gapContents + bottom
	const title = "Price of a million requests, by the answer's size"
	image := svg.New(width, height, title)
	say := image.Add
	say(`<text x="%d" y="26" font-size="16" font-weight="bold">%s</text>`, left, title)
	x := left
	for _, g := range graphs {
		say(`<path d="M%d 46h34" stroke="%s" stroke-width="%s" stroke-dasharray="%s"/>`, x, g.colour, number(g.width), g.dashes)
		say(`<text x="%d" y="50">%s</text>`, x+42, g.name)
		x += 340
	}
	for row, c := range contents {
		for column, rate := range rates {
			say(`<g transform="translate(%d %d)">`, left+column*(panelWidth+gapX), top+row*(oneContent+gapContents))
			say(`<text y="-10" font-weight="bold">%s, %s %% replays: price</text>`, c.name, number(100*rate))
			frame(say, priceHeight, dollarTicks, "$%s", down)
			say(`<text x="%d" y="%d" text-anchor="middle" font-size="11">dearer than the cheapest layout</text>`, panelWidth/2, priceHeight+gapY-10)
			curve := s.curves[row]
			for _, g := range graphs {
				g.draw(say, curve, func(one figures, _ []figures) string { return down(p.million(one, rate)) })
			}
			say(`<g transform="translate(0 %d)">`, priceHeight+gapY)
			frame(say, excessHeight, excessTicks, "%s %%", downExcess)
			for _, g := range graphs {
				g.draw(say, curve, func(one figures, all []figures) string {
					return downExcess(100 * (p.million(one, rate)/p.least(all, rate) - 1))
				})
			}
			say(`<text x="%d" y="%d" text-anchor="middle">size of the answer's body</text>`, panelWidth/2, excessHeight+36)
			say(`</g>`)
			say(`</g>`)
		}
	}
	return image.Bytes()
}

// frame draws the axes, the grid and the labels of a panel.
func frame(say func(string, ...any), height int, ticks []float64, form string, down func(float64) string) {
	for i, size := range sizes {
		x := across(size)
		say(`<path d="M%s 0v%d" stroke="#e4e4e4"/>`, x, height)
		if i+1 < len(sizes) && sizes[i+1] < 4*size { // the label would overlap the next one
			continue
		}
		say(`<text x="%s" y="%d" text-anchor="middle" font-size="10">%s</text>`, x, height+15, strings.Replace(amount(size), " ", "\u00a0", 1))
	}
	for _, tick := range ticks {
		y := down(tick)
		say(`<path d="M0 %sh%d" stroke="#e4e4e4"/>`, y, panelWidth)
		say(`<text x="-6" y="%s" dy="4" text-anchor="end" font-size="11">%s</text>`, y, fmt.Sprintf(form, number(tick)))
	}
	say(`<path d="M0 0v%dh%d" fill="none" stroke="#222"/>`, height, panelWidth)
}

// across, down and downExcess return positions in a panel.

func across(size int) string {
	least, most := math.Log(float64(sizes[0])), math.Log(float64(sizes[len(sizes)-1]))
	return place(panelWidth * (math.Log(float64(size)) - least) / (most - least))
}

func down(dollars float64) string {
	least, most := math.Log(leastDollars), math.Log(mostDollars)
	return place(priceHeight * (1 - (math.Log(dollars)-least)/(most-least)))
}

func downExcess(percent float64) string {
	return place(excessHeight * (1 - percent/mostExcess))
}

func place(pixels float64) string { return fmt.Sprintf("%.1f", pixels) }

// draw draws the line of a layout, for the sizes that the layout can store.
func (g graph) draw(say func(string, ...any), rows []row, down func(one figures, all []figures) string) {
	var b strings.Builder
	verb := "M"
	for _, one := range rows {
		if f := one.by[g.layout]; f.fits {
			_, _ = fmt.Fprintf(&b, "%s%s %s", verb, across(one.size), down(f, one.by))
			verb = "L"
		}
	}
	say(`<path d="%s" fill="none" stroke="%s" stroke-width="%s" stroke-dasharray="%s" stroke-linejoin="round"/>`,
		b.String(), g.colour, number(g.width), g.dashes)
}
