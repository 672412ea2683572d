package dynamostore

import (
	"context"
	"errors"
	"net"
	"strings"

	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

const (
	codeValidation = "ValidationException"
	codeNoResource = "ResourceNotFoundException"
	codeDenied     = "AccessDeniedException"
)

// reasonByCode maps DynamoDB's error codes to the reason of a StoreError (AWS, "Error
// handling with DynamoDB" and "Common Error Types").
var reasonByCode = map[string]lambdaidem.Reason{
	"ProvisionedThroughputExceededException": lambdaidem.ReasonThrottled,
	"ThrottlingException":                    lambdaidem.ReasonThrottled,
	"Throttling":                             lambdaidem.ReasonThrottled,
	"RequestLimitExceeded":                   lambdaidem.ReasonThrottled,

	codeNoResource: lambdaidem.ReasonNoTable,

	codeDenied:                            lambdaidem.ReasonPermission,
	"AccessDenied":                        lambdaidem.ReasonPermission,
	"NotAuthorized":                       lambdaidem.ReasonPermission,
	"OptInRequired":                       lambdaidem.ReasonPermission,
	"UnrecognizedClientException":         lambdaidem.ReasonPermission,
	"InvalidClientTokenId":                lambdaidem.ReasonPermission,
	"ExpiredTokenException":               lambdaidem.ReasonPermission,
	"ExpiredToken":                        lambdaidem.ReasonPermission,
	"RequestExpired":                      lambdaidem.ReasonPermission,
	"MissingAuthenticationToken":          lambdaidem.ReasonPermission,
	"MissingAuthenticationTokenException": lambdaidem.ReasonPermission,
	"IncompleteSignature":                 lambdaidem.ReasonPermission,
	"IncompleteSignatureException":        lambdaidem.ReasonPermission,
	"InvalidSignatureException":           lambdaidem.ReasonPermission,
	"SignatureDoesNotMatch":               lambdaidem.ReasonPermission,

	codeValidation:           lambdaidem.ReasonInvalid,
	"SerializationException": lambdaidem.ReasonInvalid,
}

// reasonOf returns the reason why a call failed. err is the error of its last try.
func reasonOf(err error) lambdaidem.Reason {
	if code := wire.Code(err); code != "" {
		if wire.IsConflict(code) {
			return lambdaidem.ReasonConflict
		}
		if code == codeValidation && saysTooLarge(err) {
			return lambdaidem.ReasonTooLarge
		}
		return reasonByCode[code]
	}
	if isForeign(err) {
		return lambdaidem.ReasonForeign
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return lambdaidem.ReasonTimeout
	}
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		return lambdaidem.ReasonTimeout
	}
	if send := (*smithyhttp.RequestSendError)(nil); errors.As(err, &send) {
		return lambdaidem.ReasonUnreachable
	}
	if _, ok := errors.AsType[*wire.IdentityError](err); ok {
		return lambdaidem.ReasonPermission
	}
	return lambdaidem.ReasonUnknown
}

// reasonOfCancellation returns the reason why one action of a cancelled transaction failed. The
// parameter code is the Code of the action's CancellationReason. ReasonInvalid means that the
// action would fail again on every retry. An item that is too large has no code of its own, so the
// result is ReasonInvalid too; the caller must recognize it by saysTooLarge.
func reasonOfCancellation(code string) lambdaidem.Reason {
	switch code {
	case "TransactionConflict":
		return lambdaidem.ReasonConflict
	case "ProvisionedThroughputExceeded", "ThrottlingError", "RequestLimitExceeded":
		return lambdaidem.ReasonThrottled
	case "ValidationError", "ItemCollectionSizeLimitExceeded":
		return lambdaidem.ReasonInvalid
	default: // "None", "ConditionalCheckFailed", "DuplicateItem", and codes that AWS may add
		return lambdaidem.ReasonUnknown
	}
}

// saysTooLarge reports whether the error's text says that an item exceeds DynamoDB's size
// limit. There are two such texts: "Item size has exceeded the maximum allowed size" and
// "Item size to update has exceeded the maximum allowed size".
func saysTooLarge(err error) bool {
	return strings.Contains(err.Error(), "Item size") && strings.Contains(err.Error(), "maximum allowed size")
}
