package idemclient

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
)

// repeatable prepares req for several attempts. outReq is the request to send, still without its
// key. nextBody returns the body for a further attempt. nextBody is nil if the body can be sent
// only once: req has no GetBody, and the body is longer than maxBuffer bytes. repeatable does not
// change req. The caller need not close the body of req.
func repeatable(req *http.Request, maxBuffer int64) (outReq *http.Request, nextBody func() (io.ReadCloser, error), err error) {
	outReq = req.WithContext(req.Context()) // a shallow copy keeps the trailers, which reading the body may set
	switch {
	case req.Body == nil:
		return outReq, func() (io.ReadCloser, error) { return nil, nil }, nil //nolint:nilnil // in http.Request a nil Body means no body
	case req.GetBody != nil:
		return outReq, req.GetBody, nil
	case req.ContentLength > maxBuffer:
		return outReq, nil, nil
	}
	data, err := readBody(req, maxBuffer+1)
	if err != nil {
		return nil, nil, err
	}
	if int64(len(data)) > maxBuffer {
		outReq.Body = readCloser{io.MultiReader(bytes.NewReader(data), req.Body), req.Body}
		return outReq, nil, nil
	}
	_ = req.Body.Close() // readBody has read all of it
	if req.ContentLength > 0 && req.ContentLength != int64(len(data)) {
		return nil, nil, fmt.Errorf("idemclient: the request's body has %d bytes; its ContentLength is %d", len(data), req.ContentLength)
	}
	nextBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	outReq.GetBody = nextBody
	outReq.Body, _ = nextBody()
	if len(req.TransferEncoding) == 0 && len(req.Trailer) == 0 { // both require chunked encoding, without a Content-Length
		outReq.ContentLength = int64(len(data))
		if len(data) == 0 {
			outReq.Body = http.NoBody // with another body, a ContentLength of 0 means unknown
			nextBody = func() (io.ReadCloser, error) { return http.NoBody, nil }
			outReq.GetBody = nextBody
		}
	}
	return outReq, nextBody, nil
}

// readBody returns the first limit bytes of a request's body, or the whole body if it is shorter,
// and leaves the body open. If the context ends first, readBody closes the body, which interrupts a
// Read that hangs, and returns the cause of the context. If reading fails, readBody closes the body
// and returns an error.
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

// readCloser is a body that reads from Reader and closes Closer.
type readCloser struct {
	io.Reader
	io.Closer
}

// closeBody closes the body of a request that is not sent: http.RoundTripper requires
// RoundTrip to close it even then.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
