package idemclient

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
)

// repeatable readies a request for several attempts: out is what is sent, without
// its key, and again gives the body anew; it is nil if the body can be sent only
// once. The caller's request is not changed, and its body is closed or belongs to
// out.
func repeatable(req *http.Request, maxBuffer int64) (out *http.Request, again func() (io.ReadCloser, error), err error) {
	out = req.WithContext(req.Context()) // shares the trailers, which a body may set while it is read
	switch {
	case req.Body == nil:
		return out, func() (io.ReadCloser, error) { return nil, nil }, nil //nolint:nilnil // no body is a body
	case req.GetBody != nil:
		return out, req.GetBody, nil
	case req.ContentLength > maxBuffer:
		return out, nil, nil
	}
	data, err := readBody(req, maxBuffer+1)
	if err != nil {
		return nil, nil, err
	}
	if int64(len(data)) > maxBuffer {
		out.Body = joined{io.MultiReader(bytes.NewReader(data), req.Body), req.Body}
		return out, nil, nil
	}
	_ = req.Body.Close() // all of it was read
	if req.ContentLength > 0 && req.ContentLength != int64(len(data)) {
		return nil, nil, fmt.Errorf("idemclient: the request's body has %d bytes; its ContentLength is %d", len(data), req.ContentLength)
	}
	again = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	out.GetBody = again
	out.Body, _ = again()
	if len(req.TransferEncoding) == 0 && len(req.Trailer) == 0 { // either of them needs chunks
		out.ContentLength = int64(len(data))
		if len(data) == 0 {
			out.Body = http.NoBody // else a length of 0 means that it is unknown
			again = func() (io.ReadCloser, error) { return http.NoBody, nil }
			out.GetBody = again
		}
	}
	return out, again, nil
}

// readBody reads up to limit bytes of a request's body. The end of the context
// closes the body, so that a reader which knows no context gives up too.
func readBody(req *http.Request, limit int64) ([]byte, error) {
	ctx := req.Context()
	stop := context.AfterFunc(ctx, func() { _ = req.Body.Close() })
	data, err := io.ReadAll(io.LimitReader(req.Body, limit))
	if !stop() {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		_ = req.Body.Close()
		return nil, fmt.Errorf("idemclient: the request's body could not be read: %w", err)
	}
	return data, nil
}

// joined reads from one thing and closes another.
type joined struct {
	io.Reader
	io.Closer
}

// closeBody keeps the promise of a RoundTripper where nothing is sent.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
