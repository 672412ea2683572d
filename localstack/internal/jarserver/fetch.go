package jarserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// fetch returns dir/lib, the folder with the program's jars and their dependencies. On the first call, Maven downloads
// them into another folder, which is then renamed. So dir/lib is always complete, even if a download was interrupted.
func fetch(ctx context.Context, p Program, dir string, progress io.Writer) (string, error) {
	lib := filepath.Join(dir, "lib")
	if exists(lib) {
		return lib, nil
	}
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return "", fmt.Errorf("java is there, but %s has to be fetched first, and Maven is not there: %w", p.Name, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	// go test runs several test processes at the same time: one of them downloads, and the others wait for it.
	unlock, err := lockFile(ctx, filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	err = fetchLocked(ctx, p, mvn, dir, lib, progress)
	return lib, errors.Join(err, unlock())
}

func fetchLocked(ctx context.Context, p Program, mvn, dir, lib string, progress io.Writer) error {
	if exists(lib) {
		return nil
	}
	partial := filepath.Join(dir, "lib.partial")
	if err := os.RemoveAll(partial); err != nil { // left by an interrupted download
		return err
	}
	pomFile := filepath.Join(dir, "pom.xml")
	if err := os.WriteFile(pomFile, p.POM, 0o600); err != nil {
		return err
	}
	start := time.Now()
	say(progress, "Fetching %s %s by Maven, once (%s), into %s …", p.Name, p.Version, p.Size, dir)
	cmd := exec.CommandContext(ctx, mvn, "-B", "-q", "-f", pomFile,
		"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+partial)
	out, err := output(cmd, func() {
		say(progress, "… still fetching, %s so far", time.Since(start).Round(time.Second))
	})
	if err != nil {
		return fmt.Errorf("fetching %s by %s failed: %w%s", p.Name, mvn, err, lastLines(out))
	}
	if err := os.Rename(partial, lib); err != nil {
		return fmt.Errorf("fetching %s by %s left no files: %w%s", p.Name, mvn, err, lastLines(out))
	}
	say(progress, "Fetched %s %s in %s.", p.Name, p.Version, time.Since(start).Round(100*time.Millisecond))
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
