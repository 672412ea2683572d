package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// protocol is the SDK's protocol, except that it sends the bytes of a Request and has
// its Answer decode what comes back. The SDK encodes maps in random order, so a
// transaction that it encoded twice would have other bytes under the same
// ClientRequestToken, which DynamoDB may take for another transaction.
type protocol struct{ smithyhttp.ClientProtocol }

func (p protocol) SerializeRequest(ctx context.Context, schema *smithy.OperationSchema, in smithy.Serializable, req *smithyhttp.Request) error {
	err := p.ClientProtocol.SerializeRequest(ctx, schema, in, req)
	c := callOf(ctx)
	if err != nil || c == nil || c.request == nil {
		return err //nolint:wrapcheck // it is the SDK's
	}
	with, err := req.SetStream(bytes.NewReader(c.request.Body))
	if err != nil {
		return fmt.Errorf("set the request's body: %w", err)
	}
	*req = *with
	return nil
}

var errGarbled = errors.New("the answer is not one to this request")

func (p protocol) DeserializeResponse(ctx context.Context, schema *smithy.OperationSchema, registry *smithy.TypeRegistry, resp *smithyhttp.Response, out smithy.Deserializable) error {
	c := callOf(ctx)
	if c == nil || c.request == nil {
		return p.ClientProtocol.DeserializeResponse(ctx, schema, registry, resp, out) //nolint:wrapcheck // it is the SDK's
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return &smithy.DeserializationError{Err: err}
	}
	if resp.StatusCode < http.StatusOK || resp.StatusCode >= http.StatusMultipleChoices {
		c.body, resp.Body = string(body), io.NopCloser(bytes.NewReader(body))
		return p.ClientProtocol.DeserializeResponse(ctx, schema, registry, resp, out) //nolint:wrapcheck // it is the SDK's
	}
	if !c.request.Answer.Success(string(body)) {
		return &smithy.DeserializationError{Err: errGarbled, Snapshot: body[:min(len(body), 1024)]}
	}
	return nil
}
