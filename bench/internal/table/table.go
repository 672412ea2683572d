// Package table writes the tables of the benchmarks.
package table

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table has rows of cells. The first row has the titles of the columns.
type Table [][]string

// Text writes the table with aligned columns, for a terminal.
func (t Table) Text(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range t {
		_, _ = fmt.Fprintln(tw, strings.Join(row, "\t")) // Flush returns the error
	}
	return tw.Flush()
}

// Markdown writes the table for a page of the documentation.
func (t Table) Markdown(w io.Writer) error {
	for i, row := range t {
		if _, err := fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | ")); err != nil {
			return err
		}
		if i > 0 {
			continue
		}
		if _, err := fmt.Fprintf(w, "|%s\n", strings.Repeat("---|", len(row))); err != nil {
			return err
		}
	}
	return nil
}
