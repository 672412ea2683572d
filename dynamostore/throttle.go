package dynamostore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

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

// throttleBySuffix maps the end of DynamoDB's throttling reasons, such as
// TableWriteKeyRangeThroughputExceeded, to the limit that was exceeded (AWS, "DynamoDB throttling
// resolution guide"). If an error has several reasons, the first in this list counts: raising a
// later limit would not help while an earlier limit is exceeded.
var throttleBySuffix = [...]struct {
	suffix   string
	throttle lambdaidem.Throttle
}{
	{"KeyRangeThroughputExceeded", lambdaidem.ThrottleKeyRange},
	{"AccountLimitExceeded", lambdaidem.ThrottleAccount},
	{"MaxOnDemandThroughputExceeded", lambdaidem.ThrottleMaximum},
	{"ProvisionedThroughputExceeded", lambdaidem.ThrottleProvisioned},
}
