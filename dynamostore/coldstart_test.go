package dynamostore

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Every cold start pays for what a package does before main, and a small function has only a
// fraction of a processor. The test counts allocations instead of time, because they are the same
// on every machine. It does not count those of the SDK.
func TestPackagesDoNothingBeforeMain(t *testing.T) {
	const enough = 40 // allocations: enough for a map or two
	program := filepath.Join(t.TempDir(), "coldstart")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./testdata/coldstart").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	run := exec.CommandContext(t.Context(), program)
	run.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	trace, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, trace)
	}
	seen := 0
	for _, m := range regexp.MustCompile(`(?m)^init (\S+) @.* (\d+) allocs$`).FindAllStringSubmatch(string(trace), -1) {
		seen++
		n, err := strconv.Atoi(m[2])
		if ours := strings.HasPrefix(m[1], "github.com/lambdaidem/toolkit/"); ours && (n > enough || err != nil) {
			t.Errorf("more than %d allocations before main: %s", enough, m[0])
		}
	}
	if seen == 0 {
		t.Errorf("this is no trace of the packages' initialisation:\n%s", trace)
	}
}
