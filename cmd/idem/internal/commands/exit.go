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
	exitFailed     = 1   // DynamoDB could not be reached, or refused a request
	exitUsage      = 2   // the command line is wrong, or fits several records
	exitNone       = 3   // there is no such record, or it has expired
	exitRefused    = 4   // nothing was changed: the lease is live, the record has changed or is completed, or the operator did not confirm
	exitFindings   = 5   // check found a problem
	exitUnknown    = 6   // the reply to a write was lost, so it may have been applied
	exitIncomplete = 7   // check found no problem, but could not check everything
	exitStopped    = 130 // a signal stopped the command
)

const exitHelp = `0 success; 1 failure; 2 wrong usage; 3 no such record; 4 refused, nothing
was changed; 5 check found a problem; 6 the reply was lost, the change may have been made;
7 check could not check everything; 130 stopped by a signal.`

// codedError is an error with the exit code for it.
type codedError struct {
	error
	code int
}

func (e codedError) Unwrap() error { return e.error }

// usage returns err with the exit code of a wrong command line. It returns err itself if it
// is nil, or if the command was interrupted.
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
