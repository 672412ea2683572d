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
type sameBody struct {
	plain   []byte  // of the first call, if it was direct
	written bytesAt // of the first call, if it was the SDK's
}

// known tells whether there was a first call.
func (b *sameBody) known() bool { return b.plain != nil || b.written != nil }

// bytesAt is what [bytes.Reader] is, which the SDK has made its bodies of so far.
type bytesAt interface {
	io.ReaderAt
	Size() int64
}

// keptBodies is the innermost middleware of the Serialize step, after the SDK's own
// serializer. (An option of the call alone would have the SDK copy all options.)
type keptBodies struct{}

func (keptBodies) ID() string { return "lambdaidem.SameBody" }

func (keptBodies) HandleSerialize(ctx context.Context, in middleware.SerializeInput, next middleware.SerializeHandler) (
	middleware.SerializeOutput, middleware.Metadata, error,
) {
	v := verdictOf(ctx)
	if v == nil || v.bytes == nil {
		return next.HandleSerialize(ctx, in)
	}
	b := v.bytes
	req, ok := in.Request.(*smithyhttp.Request)
	if !ok {
		return middleware.SerializeOutput{}, middleware.Metadata{}, fmt.Errorf("the request is a %T, not of HTTP", in.Request)
	}
	if !b.known() {
		kept, err := b.keep(req)
		if err != nil {
			return middleware.SerializeOutput{}, middleware.Metadata{}, fmt.Errorf("keep the request's body: %w", err)
		}
		if kept {
			return next.HandleSerialize(ctx, in)
		}
	}
	if b.written == nil {
		b.written = bytes.NewReader(b.plain)
	}
	req, err := req.SetStream(io.NewSectionReader(b.written, 0, b.written.Size()))
	if err != nil {
		return middleware.SerializeOutput{}, middleware.Metadata{}, fmt.Errorf("set the request's body: %w", err)
	}
	in.Request = req
	return next.HandleSerialize(ctx, in)
}

// keep keeps what the SDK wrote. It tells whether the request still has it: it has
// if it can be read at any place while it is being sent.
func (b *sameBody) keep(req *smithyhttp.Request) (bool, error) {
	if written, ok := req.GetStream().(bytesAt); ok {
		b.written = written
		return true, nil
	}
	written, err := io.ReadAll(req.GetStream())
	b.written = bytes.NewReader(written)
	return false, err
}
