// Package demo lets a demonstration say where a function is to fail, by words in a
// payment's reference, which travels with the payment to every part that hears of
// it:
//
//	receipt-dies=2         attempts 1 and 2 of the part receipt kill their process
//	notification-fails=1   attempt 1 of the part notification returns an error
//
// A function asks only where DEMO=1 is set, which template.yaml does not do: nobody
// outside should be able to ask for this.
package demo

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// At returns a place in a part's handler where it fails if the reference asks for it.
// Have it where a failure hurts most: after an effect, before anything knows of it.
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

// Nowhere fails nothing.
func Nowhere(context.Context, string) error { return nil }

// number returns what a word of the text is said to be, 0 where nothing is said.
func number(text, word string) int {
	for field := range strings.FieldsSeq(text) {
		if value, ok := strings.CutPrefix(field, word+"="); ok {
			n, _ := strconv.Atoi(value) // no number: 0
			return n
		}
	}
	return 0
}

// Die kills the process by SIGKILL: nothing is cleaned up.
func Die() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {} // until that happens
}
