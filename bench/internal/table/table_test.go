package table_test

import (
	"os"
	"testing"

	"github.com/lambdaidem/toolkit/bench/internal/table"
)

func ExampleTable_Text() {
	_ = table.Table{{"side", "median"}, {"toolkit", "7 ms"}}.Text(os.Stdout)
	// Output:
	// side     median
	// toolkit  7 ms
}

func ExampleTable_Markdown() {
	_ = table.Table{{"side", "median"}, {"toolkit", "7 ms"}}.Markdown(os.Stdout)
	// Output:
	// | side | median |
	// |---|---|
	// | toolkit | 7 ms |
}

// A page without marks is not overwritten.
func TestInsert_NeedsMarks(t *testing.T) {
	if _, err := table.Insert([]byte("# A page\n"), "cost", "x"); err == nil {
		t.Error("Insert accepted a page without marks")
	}
	page := func(text string) string { return "a\n<!-- cost:begin -->\n" + text + "<!-- cost:end -->\nb\n" }
	got, err := table.Insert([]byte(page("old\n")), "cost", "new\n")
	if want := page("new\n"); err != nil || string(got) != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}
