package jarserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// minJava is the oldest Java release that runs all programs of this package.
const minJava = 17

// byJava returns a launcher that runs the program with Java. It downloads the program first if the cache doesn't have it.
func byJava(ctx context.Context, p Program, o Options, sh string) (*launcher, error) {
	java, err := findJava(ctx)
	if err != nil {
		return nil, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("there is no cache folder for this user: %w", err)
	}
	lib, err := fetch(ctx, p, filepath.Join(cache, "lambdaidem", p.Slug+"-"+p.Version), o.Progress)
	if err != nil {
		return nil, err
	}
	return &launcher{program: p, name: "Java", sh: sh, argv: func(r Run) []string { return append([]string{java}, p.Java(lib, r)...) }}, nil
}

// findJava returns the path of java: from JAVA_HOME if that is set, as Maven does, and from PATH otherwise. It returns an
// error if that java is older than minJava.
func findJava(ctx context.Context) (string, error) {
	java, err := exec.LookPath("java")
	if home := os.Getenv("JAVA_HOME"); home != "" {
		java, err = exec.LookPath(filepath.Join(home, "bin", "java"))
	}
	if err != nil {
		return "", fmt.Errorf("java is not there: %w", err)
	}
	out, err := exec.CommandContext(ctx, java, "-version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s -version failed: %w%s", java, err, lastLines(out))
	}
	version, err := javaVersion(out)
	if err != nil {
		return "", fmt.Errorf("%s: %w%s", java, err, lastLines(out))
	}
	if version < minJava {
		return "", fmt.Errorf("%s is Java %d", java, version)
	}
	return java, nil
}

var javaVersionLine = regexp.MustCompile(`(?m)^\S+ version "(?:1\.)?(\d+)`)

// javaVersion returns the feature release in the output of `java -version`: 17 for "17.0.15" and "17-ea", 8 for
// "1.8.0_392". Other lines may precede it, for example if JAVA_TOOL_OPTIONS is set.
func javaVersion(output []byte) (int, error) {
	match := javaVersionLine.FindSubmatch(output)
	if match == nil {
		return 0, errors.New("its version can't be read from")
	}
	return strconv.Atoi(string(match[1]))
}

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

// output runs a command, calls tick every 10 seconds while it runs, and returns everything that it printed.
func output(cmd *exec.Cmd, tick func()) ([]byte, error) {
	// Children of a killed command may keep its output open. Don't wait for them.
	cmd.WaitDelay = time.Second
	done := make(chan struct{})
	var out []byte
	var err error
	go func() {
		defer close(done)
		out, err = cmd.CombinedOutput()
	}()
	ticker := time.NewTicker(10 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return out, err
		case <-ticker.C:
			tick()
		}
	}
}

// say writes a line of progress. It ignores write errors, because progress is not essential.
func say(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format+"\n", args...)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
