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

// throttleBySuffix maps the end of DynamoDB's throttling reasons to the limit that was
// exceeded. A reason such as TableWriteKeyRangeThroughputExceeded names the resource (Table
// or Index), the operation (Read or Write) and the limit (AWS, "DynamoDB throttling
// resolution guide"). If an error has several reasons, the one whose suffix comes first in
// this list is reported. Raising a limit further down the list would not help, because the
// first limit would still be exceeded.
var throttleBySuffix = [...]struct {
	suffix   string
	throttle lambdaidem.Throttle
}{
	{"KeyRangeThroughputExceeded", lambdaidem.ThrottleKeyRange},
	{"AccountLimitExceeded", lambdaidem.ThrottleAccount},
	{"MaxOnDemandThroughputExceeded", lambdaidem.ThrottleMaximum},
	{"ProvisionedThroughputExceeded", lambdaidem.ThrottleProvisioned},
}

// throttling returns which throughput limit was exceeded, according to the throttling reasons
// in DynamoDB's error. It also returns an error that wraps err and has these reasons in its
// text, because the SDK leaves them out of the text.
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

// reasonOfCancellation returns the reason why one action of a cancelled transaction failed. The
// parameter code is the Code of the action's CancellationReason. The result is ReasonInvalid if
// the action would fail again on every retry. The result is ReasonUnknown if the action did not
// fail ("None"), if its own condition failed, or if this package does not know the code.
//
// The result is ReasonInvalid also for an item that is too large, because DynamoDB has no
// separate code for that. If the item is the idempotency record, the guard can still complete it
// without the answer, so the caller must recognize this case by the error's message (see
// saysTooLarge).
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
