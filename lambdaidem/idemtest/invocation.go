package idemtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

// Invocation returns a context like the one that Lambda passes to a handler. The context ends after
// timeout, which stands for the function's timeout, or when the test ends. Its lambdacontext has a
// new request id and the ARN of a function named idemtest.
//
// A [Clock] does not move the deadline. Invocation does not set lambdacontext.FunctionName, a
// guard's default namespace: set Options.Namespace if a test depends on the namespace.
func Invocation(t testing.TB, timeout time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	return lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{
		AwsRequestID:       requestID(),
		InvokedFunctionArn: "arn:aws:lambda:us-east-1:" + accountID + ":function:idemtest",
	})
}

// requestID returns a random UUID of version 4, the form of Lambda's request ids.
func requestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	x := hex.EncodeToString(b[:])
	return x[:8] + "-" + x[8:12] + "-" + x[12:16] + "-" + x[16:20] + "-" + x[20:]
}
