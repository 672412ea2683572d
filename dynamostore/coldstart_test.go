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

// What a package does before main is paid for by every cold start, in a
// function that has a fraction of a processor. Allocations stand for the time:
// they are the same on every machine. The SDK's own are not ours to count.
func TestPackagesDoNothingBeforeMain(t *testing.T) {
	const enough = 40 // allocations, for a map or two
	program := filepath.Join(t.TempDir(), "coldstart")
	//nolint:gosec // a program of this repository
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./testdata/coldstart").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	run := exec.CommandContext(t.Context(), program) //nolint:gosec // the program just built
	run.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	trace, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, trace)
	}
	if !strings.Contains(string(trace), "init github.com/aws/aws-sdk-go-v2/service/dynamodb") {
		t.Fatalf("this is no trace of the packages' initialisation:\n%s", trace)
	}
	ours := regexp.MustCompile(`(?m)^init github\.com/lambdaidem/toolkit/(\S+) .* (\d+) allocs$`)
	for _, m := range ours.FindAllStringSubmatch(string(trace), -1) {
		if n, err := strconv.Atoi(m[2]); err != nil || n > enough {
			t.Errorf("%s allocates %s times before main; want %d at most:\n%s", m[1], m[2], enough, m[0])
		}
	}
}
