package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

const (
	codeValidation = "ValidationException"
	codeNoResource = "ResourceNotFoundException"
)

// reasonByCode names what an error code means to a guard (AWS, "Error handling
// with DynamoDB" and "Common Error Types").
var reasonByCode = map[string]lambdaidem.Reason{
	"ProvisionedThroughputExceededException": lambdaidem.ReasonThrottled,
	"ThrottlingException":                    lambdaidem.ReasonThrottled,
	"Throttling":                             lambdaidem.ReasonThrottled,
	"RequestLimitExceeded":                   lambdaidem.ReasonThrottled,

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

// throttleBySuffix names the limits in DynamoDB's throttling reasons, which are
// made of what is throttled (Table, Index), for what (Read, Write) and why (AWS,
// "DynamoDB throttling resolution guide"). Where a call ran into several, the first
// of them here counts: what helps against the later ones doesn't help against it.
var throttleBySuffix = [...]struct {
	suffix   string
	throttle lambdaidem.Throttle
}{
	{"KeyRangeThroughputExceeded", lambdaidem.ThrottleKeyRange},
	{"AccountLimitExceeded", lambdaidem.ThrottleAccount},
	{"MaxOnDemandThroughputExceeded", lambdaidem.ThrottleMaximum},
	{"ProvisionedThroughputExceeded", lambdaidem.ThrottleProvisioned},
}

// throttling is which limit an error names, and the error with DynamoDB's own
// words for it: the SDK leaves them out of the error's text.
func throttling(err error) (lambdaidem.Throttle, error) {
	var reasons []types.ThrottlingReason
	if e, ok := errors.AsType[*types.ProvisionedThroughputExceededException](err); ok {
		reasons = e.ThrottlingReasons
	} else if e, ok := errors.AsType[*types.ThrottlingException](err); ok {
		reasons = e.ThrottlingReasons
	} else if e, ok := errors.AsType[*types.RequestLimitExceeded](err); ok {
		reasons = e.ThrottlingReasons
	}
	if len(reasons) == 0 {
		return lambdaidem.ThrottleUnknown, err
	}
	said := make([]string, len(reasons))
	for i, r := range reasons {
		said[i] = aws.ToString(r.Reason)
		if r.Resource != nil {
			said[i] += " of " + *r.Resource
		}
	}
	err = fmt.Errorf("%w (%s)", err, strings.Join(said, ", "))
	for _, known := range throttleBySuffix {
		for _, r := range reasons {
			if strings.HasSuffix(aws.ToString(r.Reason), known.suffix) {
				return known.throttle, err
			}
		}
	}
	return lambdaidem.ThrottleUnknown, err
}

// reasonOfCancellation says why one action stood in a transaction's way, by the
// Code of its CancellationReason. ReasonUnknown is no failure of the store: the
// action was fine ("None"), or its own condition refused it. A write that can't be
// made however often it is tried is ReasonInvalid, one that is too large too: the
// code alone doesn't say so, and only the record's own answer may ever be left out.
func reasonOfCancellation(code string) lambdaidem.Reason {
	switch code {
	case "TransactionConflict":
		return lambdaidem.ReasonConflict
	case "ProvisionedThroughputExceeded", "ThrottlingError", "RequestLimitExceeded":
		return lambdaidem.ReasonThrottled
	case "ValidationError", "ItemCollectionSizeLimitExceeded":
		return lambdaidem.ReasonInvalid
	default: // "None", "ConditionalCheckFailed", "DuplicateItem", and what is to come
		return lambdaidem.ReasonUnknown
	}
}

// saysTooLarge knows DynamoDB's two sentences for an item over its limit: "Item
// size has exceeded the maximum allowed size" and "Item size to update has
// exceeded the maximum allowed size".
func saysTooLarge(err error) bool {
	return strings.Contains(err.Error(), "Item size") && strings.Contains(err.Error(), "maximum allowed size")
}
