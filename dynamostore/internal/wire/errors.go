package wire

import (
	"context"
	"errors"

	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
)

// Codes of errors that the package itself must tell apart (API reference,
// "TransactWriteItems").
const (
	codeInProgress = "TransactionInProgressException"
	codeOtherBytes = "IdempotentParameterMismatchException"
)

// Code returns the error code in DynamoDB's answer, or "" if err has none.
func Code(err error) string {
	const unnamed = "UnknownError" // the SDK's, for an answer that names no error
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() == unnamed {
		return ""
	}
	return api.ErrorCode()
}

// IsConflict reports whether an error code says that another transaction was at work on
// the same item. The guard retries such a call by itself.
func IsConflict(code string) bool {
	switch code {
	case "TransactionConflictException", codeInProgress:
		return true
	case "ReplicatedWriteConflictException": // from tables with multi-Region strong consistency
		return true
	}
	return false
}

// An IdentityError is the error of a call whose last attempt got no credentials. The
// SDK has no type for it.
type IdentityError struct{ Err error }

func (e *IdentityError) Error() string { return e.Err.Error() }
func (e *IdentityError) Unwrap() error { return e.Err }

// identified returns err, as an IdentityError if credentials were missing.
func (c *call) identified(err error) error {
	if err != nil && c.noIdentity {
		return &IdentityError{err}
	}
	return err
}

// identityWanted and identityHad run before and after the SDK's middleware that gets the
// credentials of an attempt.
type (
	identityWanted struct{}
	identityHad    struct{}
)

func (identityWanted) ID() string { return "lambdaidem.IdentityWanted" }
func (identityHad) ID() string    { return "lambdaidem.IdentityHad" }

func (identityWanted) HandleFinalize(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
	middleware.FinalizeOutput, middleware.Metadata, error,
) {
	if c := callOf(ctx); c != nil {
		c.noIdentity = true
	}
	return next.HandleFinalize(ctx, in)
}

func (identityHad) HandleFinalize(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
	middleware.FinalizeOutput, middleware.Metadata, error,
) {
	if c := callOf(ctx); c != nil {
		c.noIdentity = false
	}
	return next.HandleFinalize(ctx, in)
}
