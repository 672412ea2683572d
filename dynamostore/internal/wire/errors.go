package wire

import (
	"context"
	"errors"

	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
)

// The error codes of a transaction that DynamoDB refuses because an earlier transaction had the
// same ClientRequestToken (API reference, "TransactWriteItems").
const (
	codeInProgress = "TransactionInProgressException"       // the earlier transaction is still running
	codeOtherBytes = "IdempotentParameterMismatchException" // the earlier transaction had a different body
)

// Code returns the error code in DynamoDB's response, or "" if err has none.
func Code(err error) string {
	const unnamed = "UnknownError" // the SDK's code for a response that names no error
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() == unnamed {
		return ""
	}
	return api.ErrorCode()
}

// IsConflict reports whether an error code means that another transaction is writing the same
// item, or that an earlier attempt of the same transaction is still running. This package
// does not retry such a request. The guard (package lambdaidem) retries the whole call
// instead.
func IsConflict(code string) bool {
	switch code {
	case "TransactionConflictException", codeInProgress:
		return true
	case "ReplicatedWriteConflictException": // from tables with multi-Region strong consistency
		return true
	}
	return false
}

// An IdentityError is the error of a call whose last attempt got no credentials. The SDK has no
// error type for that.
type IdentityError struct{ Err error }

func (e *IdentityError) Error() string { return e.Err.Error() }
func (e *IdentityError) Unwrap() error { return e.Err }

// identified returns err, wrapped in an IdentityError if the last attempt got no
// credentials.
func (c *call) identified(err error) error {
	if err != nil && c.noIdentity {
		return &IdentityError{err}
	}
	return err
}

// beforeIdentity and afterIdentity are middleware that run before and after the SDK's
// middleware GetIdentity, which gets the credentials of an attempt. beforeIdentity sets
// call.noIdentity. afterIdentity clears it, but runs only if GetIdentity succeeds.
type (
	beforeIdentity struct{}
	afterIdentity  struct{}
)

func (beforeIdentity) ID() string { return "lambdaidem.IdentityWanted" }
func (afterIdentity) ID() string  { return "lambdaidem.IdentityHad" }

func (beforeIdentity) HandleFinalize(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
	middleware.FinalizeOutput, middleware.Metadata, error,
) {
	if c := callOf(ctx); c != nil {
		c.noIdentity = true
	}
	return next.HandleFinalize(ctx, in)
}

func (afterIdentity) HandleFinalize(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
	middleware.FinalizeOutput, middleware.Metadata, error,
) {
	if c := callOf(ctx); c != nil {
		c.noIdentity = false
	}
	return next.HandleFinalize(ctx, in)
}
