// Command moduleproxy writes the last commit of a checkout into a folder as a Go module proxy
// serves a release, so that go get and go install can be tried before a release is public:
//
//	go run ./scripts/release/moduleproxy -version v0.1.0 FOLDER
//	GOPROXY=file:///FOLDER GONOSUMDB=github.com/lambdaidem/toolkit go install …
//
// The Go Modules Reference describes the files, in "GOPROXY protocol".
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("moduleproxy: ")
	version := flag.String("version", "", "the version of the release, such as v0.1.0")
	checkout := flag.String("checkout", ".", "the folder of the checkout")
	flag.Parse()
	if *version == "" || flag.NArg() != 1 {
		log.Fatal("usage: moduleproxy -version VERSION [-checkout FOLDER] FOLDER")
	}
	if err := write(context.Background(), flag.Arg(0), *checkout, *version); err != nil {
		log.Fatal(err)
	}
}

// write writes the release into the folder proxy.
func write(ctx context.Context, proxy, checkout, version string) error {
	// Package zip can't read a checkout that is a worktree of another one, so it reads a clone.
	work, err := os.MkdirTemp("", "moduleproxy")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	clone := filepath.Join(work, "clone")
	if _, err := git(ctx, "clone", "--quiet", checkout, clone); err != nil {
		return err
	}
	committed, err := git(ctx, "-C", clone, "log", "-1", "--format=%cI")
	if err != nil {
		return err
	}
	gomod, err := os.ReadFile(filepath.Join(clone, "go.mod"))
	if err != nil {
		return err
	}
	info, err := json.Marshal(map[string]string{"Version": version, "Time": committed})
	if err != nil {
		return err
	}

	m := module.Version{Path: modfile.ModulePath(gomod), Version: version}
	escaped, err := module.EscapePath(m.Path)
	if err != nil {
		return err
	}
	folder := filepath.Join(proxy, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, content := range map[string]string{
		"list":            version + "\n",
		version + ".info": string(info),
		version + ".mod":  string(gomod),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	file, err := os.Create(filepath.Join(folder, version+".zip"))
	if err != nil {
		return err
	}
	return errors.Join(zip.CreateFromVCS(file, m, clone, "HEAD", ""), file.Close())
}

// git runs git with the arguments and returns its output, without the line break at the end.
func git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
