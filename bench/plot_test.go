package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/bench/internal/table"
)

// The published plot shows the published table.
func TestPlot_ShowsThePublishedTable(t *testing.T) {
	page, err := os.ReadFile("../" + pageFile)
	if err != nil {
		t.Fatal(err)
	}
	all, err := publishedRatios(page)
	if err != nil {
		t.Fatal(err)
	}
	plot, err := os.ReadFile("../" + plotFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(plot, plotRatios(all)) {
		t.Errorf("%s does not show the table of %s; run: make bench ARGS=-plot", plotFile, pageFile)
	}
	for _, p := range all {
		if !strings.Contains(string(page), "| "+p.scenario+" | "+p.atOnce+" |") {
			t.Errorf("the page has no row of %+v", p)
		}
	}
}

// publishedRatios reads the table as the program writes it.
func TestPlot_ReadsTheTable(t *testing.T) {
	var page strings.Builder
	if err := example().ratios().Markdown(&page); err != nil {
		t.Fatal(err)
	}
	all, err := publishedRatios([]byte("# Performance\n\n" + page.String() + "\n" + "The end.\n"))
	want := []published{
		{scenarios[0].name, "1", between(0.99, 0.98, 0.995), 1},
		{"another aim", "64", between(0.99, 0.98, 0.995), 0.98},
		{"no aim", "1", between(0.99, 0.98, 0.995), 0},
	}
	if err != nil || len(all) != len(want) {
		t.Fatalf("it reads %+v, %v", all, err)
	}
	for i, p := range all {
		if p != want[i] {
			t.Errorf("row %d is %+v; want %+v", i, p, want[i])
		}
	}
	for _, bad := range []table.Table{
		{{"scenario"}},
		{{"scenario", "at once", "samples", "median", "aim"}, {"new", "1", "2", "fast", ""}},
		{{"scenario", "at once", "samples", "median", "aim"}, {"new", "1", "2", "0.9 (0.8–1)", "less"}},
	} {
		page.Reset()
		if err := bad.Markdown(&page); err != nil {
			t.Fatal(err)
		}
		if all, err := publishedRatios([]byte("\n" + page.String())); err == nil {
			t.Errorf("%s reads as %+v", page.String(), all)
		}
	}
}
