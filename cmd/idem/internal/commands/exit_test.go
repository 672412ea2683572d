package commands

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// An exit code says that nothing was changed only if that is certain.
func TestX8_ExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{
		{errors.New("no"), exitFailed},
		{usage(errors.New("no")), exitUsage},
		{dynamostore.ErrRecordGone, exitNone},
		{dynamostore.ErrRecordChanged, exitRefused},
		{dynamostore.ErrRecordCompleted, exitRefused},
		{dynamostore.ErrRecordReleased, exitRefused},
		{&dynamostore.LeaseLiveError{}, exitRefused},
		{refused("no"), exitRefused},
		{&lambdaidem.StoreError{NotApplied: true}, exitFailed},
		{&lambdaidem.StoreError{}, exitUnknown},
		{context.Canceled, exitStopped},
		{&lambdaidem.StoreError{NotApplied: true, Err: context.Canceled}, exitStopped},
		{&lambdaidem.StoreError{Err: context.Canceled}, exitUnknown},
	} {
		if got := exitOf(fmt.Errorf("in words: %w", c.err)); got != c.code {
			t.Errorf("%v: exit code %d; want %d", c.err, got, c.code)
		}
	}
}
