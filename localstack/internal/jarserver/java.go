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

// minJava runs the bytecode of all programs.
const minJava = 17

// byJava returns the way by Java, after fetching the program if it is not in the cache.
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

// findJava returns the java of JAVA_HOME, which is also Maven's, or else of PATH, if it is recent enough.
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

// javaVersion reads the feature release from the output of `java -version`: 17 from "17.0.15" and from "17-ea", 8 from
// "1.8.0_392". Other lines may come before, such as what JAVA_TOOL_OPTIONS causes.
func javaVersion(output []byte) (int, error) {
	match := javaVersionLine.FindSubmatch(output)
	if match == nil {
		return 0, errors.New("its version can't be read from")
	}
	return strconv.Atoi(string(match[1]))
}

// fetch returns the folder with the program's jars and all that they need, dir/lib. Maven fills it on the first call. The
// folder appears by a rename, complete or not at all, so that neither an interrupted download nor a concurrent one can
// leave half of it.
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
	// Packages of tests run as processes side by side: one of them downloads, the others wait.
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
	if err := os.RemoveAll(partial); err != nil { // an interrupted one's
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

// output runs a command that may take long, calls tick every 10 seconds, and returns all that it printed.
func output(cmd *exec.Cmd, tick func()) ([]byte, error) {
	// A child of a killed command may hold its output open: don't wait for that.
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

// say writes a line of progress. That it can't be written is no reason not to go on.
func say(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format+"\n", args...)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
