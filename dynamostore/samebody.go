package dynamostore

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// sameBody sends the bytes of the first call in every call. The SDK writes maps in
// random order, so that an equal input is other bytes the next time, which under
// the same ClientRequestToken DynamoDB may take for another transaction (E1).
type sameBody struct{ bytes []byte }

type sameBodyKey struct{}

// asBefore is the context of such a call.
func (b *sameBody) asBefore(ctx context.Context) context.Context {
	return context.WithValue(ctx, sameBodyKey{}, b)
}

// keptBodies is the innermost middleware of the Serialize step, after the SDK's own
// serializer. (An option of the call alone would have the SDK copy all options.)
type keptBodies struct{}

func (keptBodies) ID() string { return "lambdaidem.SameBody" }

func (keptBodies) HandleSerialize(ctx context.Context, in middleware.SerializeInput, next middleware.SerializeHandler) (
	middleware.SerializeOutput, middleware.Metadata, error,
) {
	b, _ := ctx.Value(sameBodyKey{}).(*sameBody)
	if b == nil {
		return next.HandleSerialize(ctx, in)
	}
	req, ok := in.Request.(*smithyhttp.Request)
	if !ok {
		return middleware.SerializeOutput{}, middleware.Metadata{}, fmt.Errorf("the request is a %T, not of HTTP", in.Request)
	}
	if b.bytes == nil {
		written, err := io.ReadAll(req.GetStream())
		if err != nil {
			return middleware.SerializeOutput{}, middleware.Metadata{}, fmt.Errorf("read the request's body: %w", err)
		}
		b.bytes = written
	}
	req, err := req.SetStream(bytes.NewReader(b.bytes))
	if err != nil {
		return middleware.SerializeOutput{}, middleware.Metadata{}, fmt.Errorf("set the request's body: %w", err)
	}
	in.Request = req
	return next.HandleSerialize(ctx, in)
}
