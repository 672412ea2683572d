package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The exit codes.
const (
	exitDone       = 0
	exitFailed     = 1   // DynamoDB could not be asked, or said no
	exitUsage      = 2   // the command line is wrong
	exitNone       = 3   // there is no such record, or it has expired
	exitRefused    = 4   // nothing was changed: a live lease, a record that has changed or is completed, a no to a question
	exitFindings   = 5   // check found something wrong
	exitUnknown    = 6   // it may have been done: no reply came; look again
	exitIncomplete = 7   // check found nothing wrong, and could not look at everything
	exitStopped    = 130 // by a signal
)

const exitHelp = `0 done; 1 failed; 2 wrong usage; 3 no such record; 4 refused, and nothing
changed; 5 check found something wrong; 6 unknown, it may have been done; 7 check
could not look at everything; 130 stopped.`

// codedError is an error with an exit code of its own.
type codedError struct {
	error
	code int
}

func (e codedError) Unwrap() error { return e.error }

// usage marks an error as a mistake in the command line, unless it is nil or the
// command was interrupted.
func usage(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return codedError{err, exitUsage}
}

func refused(format string, args ...any) error {
	return codedError{fmt.Errorf(format, args...), exitRefused}
}

// exitOf returns the exit code of an error.
func exitOf(err error) int {
	if coded, ok := errors.AsType[codedError](err); ok {
		return coded.code
	}
	store, ofStore := errors.AsType[*lambdaidem.StoreError](err)
	if ofStore && !store.NotApplied {
		return exitUnknown
	}
	if errors.Is(err, context.Canceled) {
		return exitStopped
	}
	if _, live := errors.AsType[*dynamostore.LeaseLiveError](err); live {
		return exitRefused
	}
	for _, reason := range []error{dynamostore.ErrRecordChanged, dynamostore.ErrRecordCompleted, dynamostore.ErrRecordReleased, dynamostore.ErrRecordSettled} {
		if errors.Is(err, reason) {
			return exitRefused
		}
	}
	if errors.Is(err, dynamostore.ErrRecordGone) {
		return exitNone
	}
	return exitFailed
}
