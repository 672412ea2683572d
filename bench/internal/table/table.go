// Package table writes the tables of the benchmarks, and inserts them into pages.
package table

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table is a list of rows, each of which is a list of cells. The first row has the titles of the
// columns.
type Table [][]string

// Text writes the table with aligned columns, for a terminal. It returns an error of w.
func (t Table) Text(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range t {
		_, _ = fmt.Fprintln(tw, strings.Join(row, "\t")) // Flush returns the error
	}
	return tw.Flush()
}

// Markdown writes the table as Markdown, with a line for each row. It returns an error of w.
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
