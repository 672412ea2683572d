// Package demo makes handlers fail on request, for demonstrations. The request is in the
// reference of a payment, which every function that processes the payment receives:
//
//	receipt-dies=2         attempts 1 and 2 of the handler "receipt" kill their process
//	notification-fails=1   attempt 1 of the handler "notification" returns an error
//
// A function uses this package only if the environment variable DEMO is 1. template.yaml
// does not set DEMO, because no client of a real service may make it fail.
package demo

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// At returns a function that kills the process or returns an error if the reference asks
// for it. part is the name of the handler in the reference. Call the function where a
// failure does the most harm: after an effect, and before the effect is recorded.
func At(part string) func(ctx context.Context, reference string) error {
	return func(ctx context.Context, reference string) error {
		attempt := lambdaidem.Attempt(ctx)
		if attempt > 0 && attempt <= number(reference, part+"-dies") {
			Die()
		}
		if attempt > 0 && attempt <= number(reference, part+"-fails") {
			return fmt.Errorf("attempt %d failed, as was asked for", attempt)
		}
		return nil
	}
}

// Nowhere takes the place of the function that At returns, and never fails.
func Nowhere(context.Context, string) error { return nil }

// number returns N if the text contains the field word=N, and 0 otherwise.
func number(text, word string) int {
	for field := range strings.FieldsSeq(text) {
		if value, ok := strings.CutPrefix(field, word+"="); ok {
			n, _ := strconv.Atoi(value) // 0 if value is not a number
			return n
		}
	}
	return 0
}

// Die kills its own process with SIGKILL, so no cleanup runs. It does not return.
func Die() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {} // the signal may take a moment
}
