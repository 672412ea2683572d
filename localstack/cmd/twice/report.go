package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// report writes the table, the reasons why rows are wrong, and a line for scripts:
//
//	requests=36 paid=4150
//
// It returns an error if a row is wrong or if the report can't be written.
func report(w io.Writer, s *suite) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "\trequest\texpected\tanswer")
	bad := 0
	for _, r := range s.rows {
		mark := "ok"
		if len(r.wrong) > 0 {
			mark = "WRONG"
			bad++
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", mark, r.what, r.expected, r.got)
	}
	// If the table can't be written, the command must not succeed.
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	for _, r := range s.rows {
		for _, wrong := range r.wrong {
			_, _ = fmt.Fprintf(w, "\nWRONG: %s: %s\n", r.what, wrong)
		}
	}
	if _, err := fmt.Fprintf(w, "\nrequests=%d paid=%d\n", s.client.sent.Load(), s.paid); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d are not as expected", bad, len(s.rows))
	}
	return nil
}
