package jarserver

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var probe = Program{Name: "Probe", Version: "1.0", Slug: "probe", Size: "about 1 MB"}

// maven sets PATH to a new folder with this shell script as mvn, and returns the folder.
func maven(t *testing.T, script string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mvn"), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/bin:/usr/bin")
	return dir
}

func TestJavaVersion(t *testing.T) {
	for output, want := range map[string]int{
		"openjdk version \"17.0.15\" 2025-04-15\nOpenJDK Runtime Environment": 17,
		"java version \"1.8.0_392\"\n":                                        8,
		"openjdk version \"21\" 2023-09-19\n":                                 21,
		"openjdk version \"25-ea\" 2025-09-16\n":                              25,
		"Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version \"17.0.1\"\n":   17,
	} {
		if got, err := javaVersion([]byte(output)); got != want || err != nil {
			t.Errorf("javaVersion(%q) = %d, %v, want %d", output, got, err, want)
		}
	}
	for _, output := range []string{"", "The operation couldn't be completed.", "openjdk version 17"} {
		if got, err := javaVersion([]byte(output)); err == nil {
			t.Errorf("javaVersion(%q) = %d, want an error", output, got)
		}
	}
}

// copyFiles is a script for mvn that creates the output folder with one jar, as
// dependency:copy-dependencies does, and counts its runs.
const copyFiles = `
echo run >>"$(dirname "$0")/runs"
for arg; do case $arg in -DoutputDirectory=*) out=${arg#*=};; esac; done
mkdir "$out" && echo a >"$out/a.jar" || exit 1
`

func TestFetch_ConcurrentCallsDownloadOnce(t *testing.T) {
	bin := maven(t, copyFiles+`echo b >"$out/b.jar"`)
	dir := filepath.Join(t.TempDir(), "cache")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			lib, err := fetch(t.Context(), probe, dir, &bytes.Buffer{})
			if err != nil {
				t.Error(err)
				return
			}
			if !exists(filepath.Join(lib, "a.jar")) || !exists(filepath.Join(lib, "b.jar")) {
				t.Error("fetch returned half of a download")
			}
		})
	}
	wg.Wait()
	runs, err := os.ReadFile(filepath.Join(bin, "runs"))
	if err != nil || string(runs) != "run\n" {
		t.Errorf("Maven ran: %q, error %v", runs, err)
	}
}

func TestFetch_InterruptedDownloadLeavesNoLib(t *testing.T) {
	bin := maven(t, copyFiles+`echo 'disk full'; exit 1`)
	dir := t.TempDir()
	var progress bytes.Buffer
	if _, err := fetch(t.Context(), probe, dir, &progress); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("error %v, want Maven's words", err)
	}
	if !strings.Contains(progress.String(), "Fetching Probe 1.0 by Maven") {
		t.Errorf("progress %q", progress.String())
	}
	if exists(filepath.Join(dir, "lib")) {
		t.Fatal("half of a download stands as a whole one")
	}
	if err := os.WriteFile(filepath.Join(bin, "mvn"), []byte("#!/bin/sh\n"+copyFiles), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := fetch(t.Context(), probe, dir, &progress); err != nil {
		t.Errorf("the next try: %v", err)
	}
}

func TestFetch_WaitingForALockEndsWithTheContext(t *testing.T) {
	maven(t, copyFiles)
	dir := t.TempDir()
	unlock, err := lockFile(t.Context(), filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	if _, err := fetch(ctx, probe, dir, &bytes.Buffer{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if _, err := fetch(t.Context(), probe, dir, &bytes.Buffer{}); err != nil {
		t.Errorf("after the lock was given back: %v", err)
	}
}
