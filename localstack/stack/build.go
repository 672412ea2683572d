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

// The ends of error texts, which say which functions can be built.
const knownRuntimes = "known are provided.al2023, provided.al2 and provided, which run a bootstrap"

const knownCode = "known are a folder with a Go main package (BuildMethod go1.x, or none), " +
	"one with a Makefile that has build-LOGICALID (BuildMethod makefile), and one with a bootstrap that is built for this machine (no BuildMethod)"

// building is how to build one function.
type building struct {
	logicalID string
	folder    string   // folder of the function's code
	command   []string // command that builds the bootstrap; nil if the folder has a bootstrap already
	into      string   // folder for the bootstrap; the command needs it to exist
}

// plan returns how to build each function, and stores the path of each bootstrap in
// s.binaries. It returns an error for a function that can't be built, so that Start fails
// before it starts anything.
func (s *Stack) plan() ([]building, error) {
	var all []building
	for _, f := range s.template.Functions {
		folder, err := s.source(f)
		if err != nil {
			return nil, fmt.Errorf("building %s: %w", f.LogicalID, err)
		}
		b := building{f.LogicalID, folder, s.compile(f, folder), folder}
		if b.command != nil {
			b.into = s.artifacts(f)
		}
		s.binaries[f.LogicalID] = filepath.Join(b.into, "bootstrap")
		all = append(all, b)
	}
	return all, nil
}

// build builds the binaries of the functions as sam build does, but for this machine.
func build(ctx context.Context, all []building, progress io.Writer) error {
	for _, b := range all {
		if b.command == nil {
			continue
		}
		say(progress, "building "+b.logicalID)
		err := os.MkdirAll(b.into, 0o755)
		if err == nil {
			err = run(ctx, b.command, b.folder)
		}
		if err != nil {
			return fmt.Errorf("building %s: %w", b.logicalID, err)
		}
	}
	return nil
}

// source returns the folder of a function's code. CodeUri is relative to the folder of the
// template (AWS SAM CLI command reference, "sam build"). source returns an error if the
// function can't be built here.
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

// compile returns the command that builds a function's bootstrap, or nil if the folder has only
// a bootstrap. If the folder has Go code too, the code is compiled, because the bootstrap may
// be out of date.
func (s *Stack) compile(f *template.Function, folder string) []string {
	if f.BuildMethod == "makefile" {
		// Empty GOOS and GOARCH mean this machine.
		return []string{"make", "--no-print-directory", "build-" + f.LogicalID, "ARTIFACTS_DIR=" + s.artifacts(f), "GOOS=", "GOARCH="}
	}
	if f.BuildMethod == "" && !hasGo(folder) {
		return nil
	}
	// The command go run keeps the linked binary in the build cache, unlike go build. So if nothing
	// has changed, it takes about a sixth of the time. It "runs" the binary by copying it.
	//
	// The build tag lambda.norpc leaves out the protocol of the retired go1.x runtime.
	return []string{"go", "run", "-tags", "lambda.norpc", "-exec", "cp", ".", filepath.Join(s.artifacts(f), "bootstrap")}
}

// artifacts returns the folder for the function's bootstrap.
func (s *Stack) artifacts(f *template.Function) string { return filepath.Join(s.folder, f.LogicalID) }

// run runs a command in a folder. The error includes the command and its output.
func run(ctx context.Context, command []string, folder string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = folder
	cmd.Env = forThisMachine(os.Environ())
	cmd.WaitDelay = 5 * time.Second // after ctx has ended, children of the command may keep its output open
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

// forThisMachine returns env without the variables that select a target platform, and without
// those that a parent make passes to its children, such as its flags and job server.
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
