package main

import (
	"fmt"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/lambdaidem/toolkit/bench/internal/table"
)

// markdown returns the generated part of docs/cost.md.
func (s study) markdown(p prices) string {
	var b strings.Builder
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(&b, format, args...) }
	say("### Units\n\n")
	say("Each cell has the write units of a new request / of a replay. R means read units, and * a computed figure, because DynamoDB reports nothing for a refused write. A conflict costs 1* write unit everywhere.\n")
	for _, c := range contents {
		say("\n%s: %s.\n\n", c.name, c.what)
		s.table(&b, c, func(f figures) string { return cell(f.first) + " / " + cell(f.replay) })
	}
	say("\n### Price\n\n")
	say("Dollars for a million requests, of which %s are replays. A million write units cost $%s and a million read units $%s: %s. Storage costs extra; deletion by TTL costs nothing.\n",
		shares(" / "), number(p.write), number(p.read), p.source)
	for _, c := range contents {
		say("\n%s:\n\n", c.name)
		s.table(&b, c, func(f figures) string { return p.cell(f) })
	}
	for _, rate := range rates {
		say("%s", s.nearness(p, rate).sentence(rate))
	}
	say("\n### Repeated requests\n\n")
	say("A replay of a request that `Options.Repeated` recognizes is a read, and no refused write. The options of the store are the defaults, and prices are those of a million replays. If such a request has no finished record, it costs one read unit more than any other.\n\n")
	say("| answer | locked first | $ | looked up | $ | locked first / looked up |\n|---|---|---|---|---|---|\n")
	for _, one := range s.rows {
		f := one.by[byDefault]
		locked, lookedUp := p.of(f.replay), p.of(f.lookedUp)
		say("| %s, %s | %s | %s | %s | %s | %s |\n", amount(one.size), one.content.name, cell(f.replay), dollars(locked), cell(f.lookedUp), dollars(lookedUp), number(math.Round(10*locked/lookedUp)/10))
	}
	say("\n### Handlers that write\n\n")
	say("The handler makes two writes, a put and an update of items below 1 KB, and answers JSON. The options are the defaults. In a transaction each item costs double, and a cancelled transaction costs the same. A duplicate that runs beside an optimistic handler costs as much as a replay; if the answer is in parts, the duplicate may have written them too.\n\n")
	say("| answer | the writes are | new | replay | a duplicate that races | $ for a million, %s replays |\n|---|---|---|---|---|---|\n", shares(" / "))
	for _, e := range s.effects {
		say("| %s | %s | %s | %s | %s | %s |\n", amount(e.size), e.mode.name, cell(e.first), cell(e.replay), cell(e.conflict), p.cell(e.figures))
	}
	say("\n### The dearest replay\n\n%s", s.largest)
	say("\n### The index of leases\n\n%s", leasesTable(s.leases))
	return b.String()
}

func (n nearness) sentence(replays float64) string {
	if n.above == 0 {
		return fmt.Sprintf("\nAt %s %% replays the defaults are the cheapest layout for all of %d answers.\n", number(100*replays), n.of)
	}
	return fmt.Sprintf("\nAt %s %% replays the defaults are the cheapest layout for %d of %d answers. In the worst case they cost %.1f %% more than the cheapest layout (%s of %d bytes).\n",
		number(100*replays), n.of-n.above, n.of, 100*(n.factor-1), n.content.name, n.size)
}

// table writes a table with a row for each size, and a column for each layout.
func (s study) table(b *strings.Builder, c content, show func(figures) string) {
	head := []string{"answer"}
	for _, l := range layouts {
		head = append(head, l.name)
	}
	t := table.Table{head}
	for _, one := range s.rows {
		if one.content.name != c.name {
			continue
		}
		cells := []string{amount(one.size)}
		for _, f := range one.by {
			if f.fits {
				cells = append(cells, show(f))
			} else {
				cells = append(cells, "too large")
			}
		}
		t = append(t, cells)
	}
	_ = t.Markdown(b) // never fails: a strings.Builder returns no errors
}

// cell returns units as the tables show them.
func cell(u units) string {
	var parts []string
	if u.write > 0 {
		parts = append(parts, number(u.write))
	}
	if u.refused > 0 {
		parts = append(parts, number(u.refused)+"*")
	}
	if u.read > 0 {
		parts = append(parts, number(u.read)+" R")
	}
	return strings.Join(parts, " + ")
}

// short returns the table in dynamostore's documentation, as a Go comment. It has only the figures
// of the defaults.
func (s study) short(p prices) string {
	const rate = 0.05
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintf(w, "answer\tJSON: new\treplay\t$\tnoise: new\treplay\t$\n")
	for i, size := range sizes {
		_, _ = fmt.Fprint(w, amount(size))
		for c := range contents {
			f := s.rows[c*len(sizes)+i].by[byDefault]
			_, _ = fmt.Fprintf(w, "\t%s\t%s\t%s", cell(f.first), strings.ReplaceAll(cell(f.replay), "*", ""), dollars(p.million(f, rate)))
		}
		_, _ = fmt.Fprintln(w)
	}
	_ = w.Flush()
	return "//\t" + strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\n", "\n//\t") + "\n"
}

func (p prices) cell(f figures) string {
	var all []string
	for _, rate := range rates {
		all = append(all, dollars(p.million(f, rate)))
	}
	return strings.Join(all, " / ")
}

func shares(separator string) string {
	var all []string
	for _, rate := range rates {
		all = append(all, number(100*rate))
	}
	return strings.Join(all, separator) + " %"
}

func number(n float64) string { return fmt.Sprintf("%v", math.Round(n*1e6)/1e6) }

// dollars formats an amount with two decimals below 10, one below 100, and none above.
func dollars(d float64) string {
	switch {
	case d < 10:
		return fmt.Sprintf("%.2f", d)
	case d < 100:
		return fmt.Sprintf("%.1f", d)
	default:
		return fmt.Sprintf("%.0f", d)
	}
}
