package demo_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/lambdaidem/toolkit/functions/internal/demo"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// attempts makes n attempts for one record, in each of which it calls the function that At
// returns and then fails. It returns the errors of that function.
func attempts(t *testing.T, n int, reference string) []error {
	t.Helper()
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard })
	said := make([]error, n)
	for i := range said {
		_, _ = lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (int, error) {
			said[i] = demo.At("receipt")(ctx, reference)
			return 0, errors.New("again")
		})
	}
	return said
}

func TestFirstAttemptsFailAsAskedFor(t *testing.T) {
	for reference, want := range map[string]int{
		"receipt-fails=2":                   2,
		"rent receipt-fails=1 mail-fails=3": 1,
		"receipt-fails=0":                   0,
		"receipt-fails=-1":                  0,
		"receipt-fails=x":                   0,
		"receipt-fails":                     0,
		"no-receipt-fails=2":                0,
		"receipt-fails=":                    0,
		"notification-fails=2":              0,
		"":                                  0,
	} {
		for i, err := range attempts(t, 3, reference) {
			if (err != nil) != (i < want) {
				t.Errorf("%q: attempt %d: %v; want %d failures", reference, i+1, err, want)
			}
		}
	}
}

// In an unguarded handler the attempt number is 0, so the handler never fails on request.
func TestOutsideOfAGuardNothingFails(t *testing.T) {
	if err := demo.At("receipt")(t.Context(), "receipt-fails=9 receipt-dies=9"); err != nil {
		t.Error(err)
	}
	if err := demo.Nowhere(t.Context(), "receipt-fails=9"); err != nil {
		t.Error(err)
	}
}

// The process that dies is a second process of this test program.
func TestFirstAttemptDiesAsAskedFor(t *testing.T) {
	if reference := os.Getenv("DEMO_TEST_REFERENCE"); reference != "" {
		attempts(t, 1, reference)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for reference, dies := range map[string]bool{"receipt-dies=1": true, "receipt-dies=0 notification-dies=1": false} {
		cmd := exec.Command(self, "-test.run=^TestFirstAttemptDiesAsAskedFor$")
		cmd.Env = append(os.Environ(), "DEMO_TEST_REFERENCE="+reference)
		err := cmd.Run()
		killed := false
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			status, ok := exit.Sys().(syscall.WaitStatus)
			killed = ok && status.Signaled() && status.Signal() == syscall.SIGKILL
		}
		if killed != dies || !dies && err != nil {
			t.Errorf("%s: %v; want it killed: %v", reference, err, dies)
		}
	}
}
