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
)

// build makes the functions' binaries by the Makefile's own targets, those that
// deployment uses: what runs here is what runs there, but for the architecture.
func (s *Stack) build(ctx context.Context, root string, progress io.Writer) error {
	for _, f := range s.template.Functions {
		say(progress, "building "+f.LogicalID)
		// GOOS and GOARCH empty: for this machine.
		cmd := exec.CommandContext(ctx, "make", "--no-print-directory", "-C", root, "build-"+f.LogicalID,
			"ARTIFACTS_DIR="+filepath.Dir(s.binary(f.LogicalID)), "GOOS=", "GOARCH=")
		cmd.Env = withoutMake(os.Environ())
		cmd.WaitDelay = 5 * time.Second // for make's children, when ctx has ended
		if output, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w\n%s\n%s", f.LogicalID, err, strings.Join(cmd.Args, " "), output)
		}
	}
	return nil
}

// binary is where a function's binary is, by the function's logical ID.
func (s *Stack) binary(logicalID string) string {
	return filepath.Join(s.folder, logicalID, "bootstrap")
}

// withoutMake drops what a make that started us told its children: its flags
// and its job server are not meant for ours.
func withoutMake(env []string) []string {
	var kept []string
	for _, variable := range env {
		name, _, _ := strings.Cut(variable, "=")
		if name != "MAKEFLAGS" && name != "MFLAGS" && name != "MAKELEVEL" && name != "MAKEOVERRIDES" {
			kept = append(kept, variable)
		}
	}
	return kept
}
