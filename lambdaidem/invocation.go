package lambdaidem

import (
	"context"
	"strings"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

// maxLabel is the maximum length of [Claim.Invocation] and [Lease.LastFailure], in bytes. A
// request id has 36.
const maxLabel = 128

// invocationOf returns Lambda's request id, or "" outside Lambda.
func invocationOf(ctx context.Context) string {
	lc, ok := lambdacontext.FromContext(ctx)
	if !ok {
		return ""
	}
	return label(lc.AwsRequestID)
}

// label returns s as valid UTF-8 of at most maxLabel bytes, which every store can keep.
func label(s string) string {
	if len(s) > maxLabel {
		s = s[:maxLabel]
	}
	return strings.ToValidUTF8(s, "") // also drops a character that was cut in the middle
}
