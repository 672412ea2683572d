package idemtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

// Invocation returns a context as Lambda gives one to a handler: it ends after
// timeout, the function's, and has a lambdacontext with a request id of its own
// and the ARN of a function named idemtest. It is cancelled when the test ends.
//
// The deadline is one of real time, or of virtual time in a bubble of
// testing/synctest; a [Clock] does not move it. The variable
// lambdacontext.FunctionName, of which a guard makes its default namespace, is
// the process's, and stays as it is: set Options.Namespace where it matters.
func Invocation(t testing.TB, timeout time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	return lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{
		AwsRequestID:       requestID(),
		InvokedFunctionArn: "arn:aws:lambda:us-east-1:" + accountID + ":function:idemtest",
	})
}

// requestID returns a UUID of version 4, as Lambda's are.
func requestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	x := hex.EncodeToString(b[:])
	return x[:8] + "-" + x[8:12] + "-" + x[12:16] + "-" + x[16:20] + "-" + x[20:]
}
