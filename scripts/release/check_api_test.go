//go:build unix

// Package release_test tests the scripts in this folder.
package release_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository is a Git repository with a small module that has the toolkit's path, and with the script.
type repository struct {
	t      *testing.T
	folder string
}

func newRepository(t *testing.T) repository {
	t.Helper()
	r := repository{t, t.TempDir()}
	r.write("go.mod", "module github.com/lambdaidem/toolkit\n\ngo 1.26.0\n")
	r.write("CHANGELOG.md", "## [0.1.0] - 2026-12-01\n")
	r.write("lambdaidem/guard.go", "package lambdaidem\n\nfunc New() {}\n\nfunc Step() {}\n")
	r.write("localstack/stack/stack.go", "package stack\n\nfunc Start() {}\n")
	root := filepath.Join("..", "..")
	for _, file := range []string{"scripts/release/check-api", "tools/release/go.mod", "tools/release/go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		r.write(file, string(text))
	}
	r.git("init", "--quiet")
	r.commit()
	return r
}

func (r repository) write(file, text string) {
	r.t.Helper()
	path := filepath.Join(r.folder, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

func (r repository) git(args ...string) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", args...)
	cmd.Dir = r.folder
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

func (r repository) commit() {
	r.t.Helper()
	r.git("add", "--all")
	r.git("-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false", "commit", "--quiet", "--message=test")
}

// check runs the script. It fails the test unless the script's success is passes and its output
// contains want.
func (r repository) check(passes bool, want string) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "scripts/release/check-api")
	cmd.Dir = r.folder
	out, err := cmd.CombinedOutput()
	if (err == nil) != passes || !strings.Contains(string(out), want) {
		r.t.Errorf("check-api: %v\n%s\nwant %q, and success is %t", err, out, want, passes)
	}
}

func TestCheckAPI_ComparesWithTheLastRelease(t *testing.T) {
	r := newRepository(t)
	r.check(true, "no release is tagged yet")

	r.git("tag", "v0.1.0")
	r.write("lambdaidem/guard.go", "package lambdaidem\n\nfunc New() {}\n\nfunc Step() {}\n\nfunc Do() {}\n")
	r.write("localstack/stack/stack.go", "package stack\n")
	r.commit()
	r.check(true, "no incompatible change since v0.1.0")

	r.write("lambdaidem/guard.go", "package lambdaidem\n\nfunc New() {}\n")
	r.check(false, "./lambdaidem.Step: removed")

	r.write("CHANGELOG.md", "## [0.1.1] - Unreleased\n\n## [0.1.0] - 2026-12-01\n")
	r.check(false, "version 0.1.1, the first in CHANGELOG.md, must not have them")

	r.write("CHANGELOG.md", "## [0.2.0] - Unreleased\n\n## [0.1.0] - 2026-12-01\n")
	r.check(true, "./lambdaidem.Step: removed")

	// At the commit of a release, the script compares with the release before.
	r.commit()
	r.git("tag", "v0.2.0")
	r.check(true, "incompatible changes since v0.1.0")
}

func TestCheckAPI_AllowsIncompatibleChangesInMajorVersionsOnly(t *testing.T) {
	r := newRepository(t)
	r.git("tag", "v1.3.0")
	r.write("lambdaidem/guard.go", "package lambdaidem\n\nfunc New() {}\n")
	r.write("CHANGELOG.md", "## [1.4.0] - Unreleased\n")
	r.commit()
	r.check(false, "version 1.4.0")

	r.write("CHANGELOG.md", "## [2.0.0] - Unreleased\n")
	r.check(true, "version 2.0.0")
}
