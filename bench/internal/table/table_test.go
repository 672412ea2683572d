package table_test

import (
	"os"
	"path/filepath"
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

// Insert returns an error for a page without the marks.
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

func TestInsertFile_LeavesAFileWithoutMarksAsItIs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	for page, want := range map[string]string{
		"# A page\n": "",
		"<!-- cost:begin -->\nold\n<!-- cost:end -->\n": "<!-- cost:begin -->\nnew\n<!-- cost:end -->\n",
	} {
		if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
		err := table.InsertFile(file, "cost", "new\n")
		got, readErr := os.ReadFile(file)
		if readErr != nil {
			t.Fatal(readErr)
		}
		if accepted := want != ""; (err == nil) != accepted || accepted && string(got) != want || !accepted && string(got) != page {
			t.Errorf("InsertFile = %v, and made of %q %q; want %q", err, page, got, want)
		}
	}
	if err := table.InsertFile(file+"-missing", "cost", "new\n"); err == nil {
		t.Error("InsertFile accepted a file that does not exist")
	}
}
