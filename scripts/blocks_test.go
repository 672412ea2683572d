//go:build unix

package scripts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestBlocks_PrintsTheBlocksOfASection(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	text := "# Page\n\n## Install\n\n```sh\ngo get\n```\n\n## Use\n\nText.\n\n```go\na()\n\n```\n```sh\nmake\n```\n\n### More\n\n```go\nb()\n```\n\n## Use it\n\n```go\nc()\n```\n"
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ section, language, want string }{
		{"Install", "sh", "go get\n"},
		{"Use", "go", "a()\n\nb()\n"},
		{"Use", "sh", "make\n"},
		{"Install", "go", ""},
		{"More", "go", ""},
	} {
		out, err := exec.CommandContext(t.Context(), "./blocks", page, tt.section, tt.language).Output()
		if string(out) != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("blocks of %s in %s: %q, %v; want %q, or an error if there are none", tt.language, tt.section, out, err, tt.want)
		}
	}
}
