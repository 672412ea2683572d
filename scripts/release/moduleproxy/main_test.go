package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// release writes the last commit as a release, downloads the release as a user does, and returns the
// folder of the downloaded module.
func release(t *testing.T) string {
	t.Helper()
	proxy := t.TempDir()
	if err := write(t.Context(), proxy, filepath.Join("..", "..", ".."), "v0.1.0"); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "github.com/lambdaidem/toolkit@latest")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "GOPROXY=file://"+proxy, "GONOSUMDB=*", "GOMODCACHE="+t.TempDir(), "GOFLAGS=-modcacherw", "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go mod download: %v\n%s", err, out)
	}
	var downloaded struct{ Version, Dir string }
	if err := json.Unmarshal(out, &downloaded); err != nil || downloaded.Version != "v0.1.0" {
		t.Fatalf("go mod download: %v\n%s", err, out)
	}
	return downloaded.Dir
}

func TestRelease(t *testing.T) {
	folder := release(t)
	t.Run("has what users need", func(t *testing.T) { hasWhatUsersNeed(t, folder) })
	t.Run("can be installed", func(t *testing.T) { canBeInstalled(t, folder) })
}

// A user downloads everything that is in the release. So the release must have no large files, and the
// tools of the project must be modules of their own.
func hasWhatUsersNeed(t *testing.T, folder string) {
	t.Helper()
	var all []string
	var size int64
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		all = append(all, filepath.ToSlash(name))
		size += info.Size()
		if info.Size() > 200_000 {
			t.Errorf("%s has %d bytes", name, info.Size())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if size > 16_000_000 {
		t.Errorf("the release has %d bytes", size)
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md", "go.mod", "go.sum", "template.yaml", "watch.yaml"} {
		if !slices.Contains(all, name) {
			t.Errorf("the release has no %s", name)
		}
	}
	for _, name := range all {
		if strings.HasPrefix(name, "tools/") {
			t.Errorf("the release has %s", name)
		}
	}
}

// go install refuses a module whose go.mod has directives that only a main module may have.
func canBeInstalled(t *testing.T, folder string) {
	t.Helper()
	path := filepath.Join(folder, "go.mod")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := modfile.Parse(path, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(parsed.Replace) > 0 || len(parsed.Exclude) > 0 {
		t.Error("go.mod has replace or exclude directives")
	}
}
