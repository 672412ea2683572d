package dynamostore

import (
	"context"
	"errors"
	"net"
	"strings"

	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

const (
	codeValidation = "ValidationException"
	codeNoResource = "ResourceNotFoundException"
	codeInProgress = "TransactionInProgressException"
	codeOtherBytes = "IdempotentParameterMismatchException"
)

// reasonByCode names what an error code means to a guard (AWS, "Error handling
// with DynamoDB" and "Common Error Types").
var reasonByCode = map[string]lambdaidem.Reason{
	"ProvisionedThroughputExceededException": lambdaidem.ReasonThrottled,
	"ThrottlingException":                    lambdaidem.ReasonThrottled,
	"Throttling":                             lambdaidem.ReasonThrottled,
	"RequestLimitExceeded":                   lambdaidem.ReasonThrottled,

	// X9. The second comes of tables with multi-Region strong consistency, while
	// another Region writes the item.
	"TransactionConflictException":     lambdaidem.ReasonConflict,
	"ReplicatedWriteConflictException": lambdaidem.ReasonConflict,

	codeInProgress: lambdaidem.ReasonConflict,

	codeNoResource: lambdaidem.ReasonNoTable,

	"AccessDeniedException":               lambdaidem.ReasonPermission,
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

// reasonOf says why a call failed, by its last error.
func reasonOf(err error) lambdaidem.Reason {
	if code := codeOf(err); code != "" {
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
	return lambdaidem.ReasonUnknown
}

// saysTooLarge knows DynamoDB's two sentences for an item over its limit: "Item
// size has exceeded the maximum allowed size" and "Item size to update has
// exceeded the maximum allowed size".
func saysTooLarge(err error) bool {
	return strings.Contains(err.Error(), "Item size") && strings.Contains(err.Error(), "maximum allowed size")
}

// reasonOfCancellation says what a reason in a cancelled transaction means to a
// guard.
func reasonOfCancellation(code string) lambdaidem.Reason {
	switch code {
	case "TransactionConflict":
		return lambdaidem.ReasonConflict
	case "ProvisionedThroughputExceeded", "ThrottlingError":
		return lambdaidem.ReasonThrottled
	case "ValidationError":
		return lambdaidem.ReasonInvalid
	}
	return lambdaidem.ReasonUnknown
}
