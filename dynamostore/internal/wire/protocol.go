package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// protocol is the SDK's protocol with two changes, both for calls of [Client.Do]:
//   - It sends the bytes that Request.body returns, which are the same in every attempt.
//   - It passes a successful response to Request.Answer before the SDK decodes the response.
type protocol struct{ smithyhttp.ClientProtocol }

func (p protocol) SerializeRequest(ctx context.Context, schema *smithy.OperationSchema, in smithy.Serializable, req *smithyhttp.Request) error {
	err := p.ClientProtocol.SerializeRequest(ctx, schema, in, req)
	c := callOf(ctx)
	if err != nil || c == nil || c.request == nil {
		return err //nolint:wrapcheck // it is the SDK's
	}
	body, err := c.request.body(in, req)
	if err != nil {
		return err
	}
	with, err := req.SetStream(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("set the request's body: %w", err)
	}
	*req = *with
	return nil
}

// body returns the bytes to send. They are the same in every attempt, because DynamoDB might take
// attempts with different bytes for different transactions.
//
// The bytes are r.Body, unless the user's middleware has changed params, the request in the SDK's
// types. In that case, body returns what the SDK encoded in the first attempt. The SDK's encodings
// differ, because it encodes maps in random order.
func (r *Request) body(params any, req *smithyhttp.Request) ([]byte, error) {
	if r.altered != nil {
		return r.altered, nil
	}
	original, err := r.input()
	if err != nil || reflect.DeepEqual(original.params, params) {
		return r.Body, err
	}
	if r.altered, err = io.ReadAll(req.GetStream()); err != nil {
		return nil, fmt.Errorf("read the request's body: %w", err)
	}
	return r.altered, nil
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
	ok := resp.StatusCode >= http.StatusOK && resp.StatusCode < http.StatusMultipleChoices
	if ok && !c.request.Answer.Success(string(body)) {
		return &smithy.DeserializationError{Err: errGarbled, Snapshot: body[:min(len(body), 1024)]}
	}
	if !ok {
		c.body = string(body)
	}
	// The SDK decodes the response again, because the user's middleware may use the SDK's
	// output.
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return p.ClientProtocol.DeserializeResponse(ctx, schema, registry, resp, out) //nolint:wrapcheck // it is the SDK's
}
