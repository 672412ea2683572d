package dynamostore

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// sameBody sends the bytes of the first call in every call. The SDK writes maps in
// random order, so that an equal input is other bytes the next time, which under
// the same ClientRequestToken DynamoDB may take for another transaction (E1).
type sameBody struct{ bytes []byte }

// asBefore is the option of such a call.
func (b *sameBody) asBefore(o *dynamodb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Serialize.Add(b, middleware.After) // after the SDK's own serializer
	})
}

func (*sameBody) ID() string { return "lambdaidem.SameBody" }

func (b *sameBody) HandleSerialize(ctx context.Context, in middleware.SerializeInput, next middleware.SerializeHandler) (
	middleware.SerializeOutput, middleware.Metadata, error,
) {
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
