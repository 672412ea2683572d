package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Expected: what the pages link to is there. Happened: README.md says that
// functions/transfers enlists its writes, and there is no such function; nor does
// functions/payments, of which it says the same.
func TestAttack_LinkedFilesAreThere(t *testing.T) {
	for _, page := range []string{"README.md", "docs/effects.md", "docs/correctness.md", "docs/errors.md"} {
		text, err := os.ReadFile(filepath.Join("..", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range regexp.MustCompile(`\]\(([^):#]+)[#)]`).FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join("..", filepath.Dir(page), link[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", page, link[1])
			}
		}
	}
}
