package jarserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
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
