package direct

import (
	"context"
	"os"
	"sync/atomic"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// traces gives requests the header field by which Lambda detects recursive calls,
// as the SDK's own middleware writes it.
type traces struct{ last atomic.Pointer[trace] }

type trace struct{ raw, field string }

func (t *traces) id(ctx context.Context) (id string, ok bool) {
	raw, traced := os.LookupEnv("_X_AMZN_TRACE_ID") // an empty one is sent too
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

// nowhere is the end of a middleware stack.
type nowhere struct{}

func (nowhere) HandleBuild(context.Context, middleware.BuildInput) (middleware.BuildOutput, middleware.Metadata, error) {
	return middleware.BuildOutput{}, middleware.Metadata{}, nil
}
