package stack

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/localstack/template"
)

// What follows a refusal: which functions are built here.
const knownRuntimes = "known are provided.al2023, provided.al2 and provided, which run a bootstrap"

const knownCode = "known are a folder with a Go main package (BuildMethod go1.x, or none), " +
	"one with a Makefile that has build-LOGICALID (BuildMethod makefile), and one with a bootstrap that is built for this machine (no BuildMethod)"

// building is what has to be done for one function.
type building struct {
	logicalID string
	folder    string   // of its code
	command   []string // makes the bootstrap; nil where it is there
}

// plan finds out how the functions are built, before anything is started. It
// says where each bootstrap will be.
func (s *Stack) plan() ([]building, error) {
	var all []building
	for _, f := range s.template.Functions {
		folder, err := s.source(f)
		if err != nil {
			return nil, fmt.Errorf("building %s: %w", f.LogicalID, err)
		}
		b := building{f.LogicalID, folder, s.compile(f, folder)}
		into := folder
		if b.command != nil {
			into = s.artifacts(f)
		}
		s.binaries[f.LogicalID] = filepath.Join(into, "bootstrap")
		all = append(all, b)
	}
	return all, nil
}

// build makes the functions' binaries as sam build would, but for this machine.
func build(ctx context.Context, all []building, progress io.Writer) error {
	for _, b := range all {
		if b.command == nil {
			continue
		}
		say(progress, "building "+b.logicalID)
		if err := run(ctx, b.command, b.folder); err != nil {
			return fmt.Errorf("building %s: %w", b.logicalID, err)
		}
	}
	return nil
}

// source returns the folder of a function's code: CodeUri, relative to the template's
// own folder ("sam build", AWS SAM CLI command reference). What can't be built
// here is an error that says so.
func (s *Stack) source(f *template.Function) (string, error) {
	switch {
	case f.PackageType == "Image":
		return "", fmt.Errorf("it is a container image (PackageType: Image); %s", knownCode)
	case !strings.HasPrefix(f.Runtime, "provided"):
		return "", fmt.Errorf("its runtime is %q; %s", f.Runtime, knownRuntimes)
	case f.InlineCode:
		return "", fmt.Errorf("it has InlineCode; %s", knownCode)
	case strings.Contains(f.CodeURI, "://"):
		return "", fmt.Errorf("its CodeUri is %s, which is not on this machine; %s", f.CodeURI, knownCode)
	}
	folder := f.CodeURI
	if !filepath.IsAbs(folder) {
		folder = filepath.Join(s.root, folder)
	}
	info, err := os.Stat(folder)
	switch {
	case err != nil:
		return "", fmt.Errorf("its CodeUri is %q: %w", f.CodeURI, err)
	case !info.IsDir():
		return "", fmt.Errorf("its CodeUri %s is a package that was built before; %s", f.CodeURI, knownCode)
	}
	switch f.BuildMethod {
	case "makefile", "go1.x":
	case "":
		if !hasGo(folder) && !exists(filepath.Join(folder, "bootstrap")) {
			return "", fmt.Errorf("%s has neither Go code nor a bootstrap, and its Metadata names no BuildMethod; %s", folder, knownCode)
		}
	default:
		return "", fmt.Errorf("its BuildMethod is %q; %s", f.BuildMethod, knownCode)
	}
	return folder, nil
}

// compile returns the command that makes a function's bootstrap, or nil where it is
// there. Go code is compiled although a bootstrap lies beside it, which may be
// older.
func (s *Stack) compile(f *template.Function, folder string) []string {
	if f.BuildMethod == "makefile" {
		// GOOS and GOARCH empty: for this machine.
		return []string{"make", "--no-print-directory", "build-" + f.LogicalID, "ARTIFACTS_DIR=" + s.artifacts(f), "GOOS=", "GOARCH="}
	}
	if f.BuildMethod == "" && !hasGo(folder) {
		return nil
	}
	// lambda.norpc leaves out the protocol of a runtime that is gone.
	return []string{"go", "build", "-tags", "lambda.norpc", "-o", filepath.Join(s.artifacts(f), "bootstrap"), "."}
}

// artifacts returns the folder that a function's bootstrap is built into.
func (s *Stack) artifacts(f *template.Function) string { return filepath.Join(s.folder, f.LogicalID) }

// run runs a command in a folder. Its words are in the error.
func run(ctx context.Context, command []string, folder string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = folder
	cmd.Env = forThisMachine(os.Environ())
	cmd.WaitDelay = 5 * time.Second // for the command's children, when ctx has ended
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s, in %s\n%s", err, strings.Join(cmd.Args, " "), folder, output)
	}
	return nil
}

func hasGo(folder string) bool {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	return err == nil && len(files) > 0
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// forThisMachine drops what a make that started us told its children, its flags
// and its job server, and the platform that the user may build for.
func forThisMachine(env []string) []string {
	var kept []string
	for _, variable := range env {
		switch name, _, _ := strings.Cut(variable, "="); name {
		case "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "GOOS", "GOARCH":
		default:
			kept = append(kept, variable)
		}
	}
	return kept
}
