package main

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// sizes are the sizes in the tables: the bytes of the answer's body as the client receives it.
var sizes = []int{205, 1 << 10, 4 << 10, 32 << 10, 128 << 10, 400 << 10, 6 << 20}

// row has the figures of one answer in every layout.
type row struct {
	content content
	size    int
	by      []figures // in the order of layouts
}

// effect has the figures of a handler that makes two writes of its own.
type effect struct {
	mode mode
	size int // bytes of its answer, which is JSON
	figures
}

// study has everything that the page shows.
type study struct {
	rows    []row
	effects []effect
	curves  [][]row // for each content, rows of many sizes
	largest largest
	leases  []leaseCost
}

// conduct measures everything that the page shows.
func (r *rig) conduct(ctx context.Context) (study, error) {
	s, err := r.tables(ctx)
	if err != nil {
		return s, err
	}
	of := len(sizes) // number of rows for each content
	for i, c := range contents {
		curve := slices.Clone(s.rows[i*of : (i+1)*of])
		for _, size := range steps(sizes[0], finest, perDecade) {
			if slices.Contains(sizes, size) {
				continue
			}
			one, err := r.row(ctx, c, size)
			if err != nil {
				return s, err
			}
			curve = append(curve, one)
		}
		slices.SortFunc(curve, func(a, b row) int { return a.size - b.size })
		s.curves = append(s.curves, curve)
	}
	s.largest, err = r.largestReplay(ctx)
	return s, err
}

// The plot has perDecade sizes for each factor of ten, up to finest. Above finest, units grow in
// proportion to the size.
const (
	perDecade = 12
	finest    = 400 << 10
)

// tables measures what the tables show.
func (r *rig) tables(ctx context.Context) (study, error) {
	var s study
	for _, c := range contents {
		for _, size := range sizes {
			one, err := r.row(ctx, c, size)
			if err != nil {
				return s, err
			}
			s.rows = append(s.rows, one)
		}
	}
	for _, size := range sizes {
		for _, m := range modes {
			f, err := r.measure(ctx, layouts[byDefault], m, contents[0].answer(size))
			if err != nil {
				return s, fmt.Errorf("%s: %w", m.name, err)
			}
			s.effects = append(s.effects, effect{m, size, f})
		}
	}
	var err error
	s.leases, err = r.leaseCosts(ctx)
	return s, err
}

func (r *rig) row(ctx context.Context, c content, size int) (row, error) {
	one := row{content: c, size: size}
	answer := c.answer(size)
	for _, l := range layouts {
		if l.inline && size > 16*maxInline { // does not fit even if it is compressed well, so don't try 6 MB
			one.by = append(one.by, figures{})
			continue
		}
		f, err := r.measure(ctx, l, silent, answer)
		if err != nil {
			return one, err
		}
		one.by = append(one.by, f)
	}
	return one, nil
}

// steps returns sizes between from and to, with perDecade of them for each factor of ten.
func steps(from, to, perDecade int) []int {
	var all []int
	n := int(math.Round(math.Log10(float64(to)/float64(from)) * float64(perDecade)))
	for i := range n + 1 {
		all = append(all, int(math.Round(float64(from)*math.Pow(float64(to)/float64(from), float64(i)/float64(n)))))
	}
	return all
}

// rates are the shares of replays among all requests for which the page gives prices.
var rates = []float64{0.01, 0.05, 0.20}

// differences lists the figures for which DynamoDB reported other units than were computed, and
// returns the number of figures compared. transactions has the differences in what transactions
// wrote, which DynamoDB Local is known to count in another way; others has the rest.
func (s study) differences(measured study) (others, transactions []string, compared int) {
	for i, one := range s.rows {
		for j, f := range one.by {
			m := measured.rows[i].by[j]
			compared += 4
			if f != m {
				others = append(others, fmt.Sprintf("%s, %s, %s: computed %+v, measured %+v", amount(one.size), one.content.name, layouts[j].name, f, m))
			}
		}
	}
	for i, one := range s.effects {
		m := measured.effects[i]
		compared += 4
		if one.figures == m.figures {
			continue
		}
		what := fmt.Sprintf("%s, %s: computed %+v, measured %+v", amount(one.size), one.mode.name, one.figures, m.figures)
		same := one.figures
		same.first.write = m.first.write
		if one.mode.transacts && same == m.figures {
			transactions = append(transactions, what)
		} else {
			others = append(others, what)
		}
	}
	for i, one := range s.leases {
		m := measured.leases[i]
		compared += 2
		if one.off == m.off && one.on == m.on {
			continue
		}
		what := fmt.Sprintf("index of leases, %s: computed %+v, measured %+v", one.name, one, m)
		same := one
		same.off.write, same.on.write = m.off.write, m.on.write
		if one.transacts && same == m {
			transactions = append(transactions, what)
		} else {
			others = append(others, what)
		}
	}
	return others, transactions, compared
}

func amount(size int) string {
	switch {
	case size >= 1<<20:
		return fmt.Sprintf("%d MB", size>>20)
	case size < 1<<10:
		return fmt.Sprintf("%.1f KB", float64(size)/1024)
	default:
		return fmt.Sprintf("%d KB", size>>10)
	}
}
