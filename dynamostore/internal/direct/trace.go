package direct

import (
	"context"
	"os"
	"sync/atomic"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// traces provides the header field X-Amzn-Trace-Id, which Lambda uses to detect recursive calls. It
// caches the field for the last trace id.
type traces struct{ last atomic.Pointer[trace] }

// trace is one trace id. raw is the value of the environment variable _X_AMZN_TRACE_ID. field is
// the value that the SDK computes from raw for the header field X-Amzn-Trace-Id.
type trace struct{ raw, field string }

// id returns the value of the header field X-Amzn-Trace-Id. The SDK's own middleware computes
// it. id returns false if the SDK would not send the field: outside Lambda, or if the
// environment variable _X_AMZN_TRACE_ID is not set.
func (t *traces) id(ctx context.Context) (id string, ok bool) {
	raw, traced := os.LookupEnv("_X_AMZN_TRACE_ID") // the SDK sends the field even if the variable is empty
	if !traced {
		return "", false
	}
	if _, inLambda := os.LookupEnv("AWS_LAMBDA_FUNCTION_NAME"); !inLambda {
		return "", false
	}
	if last := t.last.Load(); last != nil && last.raw == raw {
		return last.field, true
	}
	req, _ := smithyhttp.NewStackRequest().(*smithyhttp.Request)
	_, _, _ = (&awsmiddleware.RecursionDetection{}).HandleBuild(ctx, middleware.BuildInput{Request: req}, nowhere{}) // no error
	found := &trace{raw, req.Header.Get(fieldTrace)}
	t.last.Store(found)
	return found.field, true
}

// nowhere is a middleware handler that does nothing. The method traces.id passes it to the SDK's
// middleware RecursionDetection as the next handler, which must not be nil. RecursionDetection sets
// the header field X-Amzn-Trace-Id before it calls the next handler.
type nowhere struct{}

func (nowhere) HandleBuild(context.Context, middleware.BuildInput) (middleware.BuildOutput, middleware.Metadata, error) {
	return middleware.BuildOutput{}, middleware.Metadata{}, nil
}
