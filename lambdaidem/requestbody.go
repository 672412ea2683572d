package lambdaidem

import (
	"errors"
	"fmt"
	"io"
	"net/http"
)

// readBody reads the body, but at most one byte more than Options.MaxBody. It returns an error
// if the body is longer, can't be read, or may be incomplete. The guard must not compare an
// incomplete body, because a part of one body can equal another body.
func (h *guarded) readBody(r *http.Request, reqTarget target) ([]byte, *Error) {
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(io.LimitReader(r.Body, int64(h.g.opts.MaxBody)+1))
		switch bound := (*http.MaxBytesError)(nil); {
		case errors.As(err, &bound):
			return body, bodyTooLarge(bound.Limit)
		case err != nil:
			return body, requestInvalid("The body could not be read to its end.", err)
		case len(body) > h.g.opts.MaxBody:
			return body, bodyTooLarge(int64(h.g.opts.MaxBody))
		}
	}
	length := bodyLength(r)
	readAsForm := r.PostForm != nil || r.MultipartForm != nil // by an outer handler
	switch {
	case length == int64(len(body)), length < 0 && isFirst(r, reqTarget, h):
		return body, nil
	case length < 0 && !readAsForm:
		return body, bodyUnknown(http.StatusLengthRequired, "The request has no Content-Length, so it can't be told here whether its body is whole.",
			errors.New("the body's length is unknown, and handlers outside of the guard may have read some of it: "+
				"put lambdaidem.Outermost around the outermost handler"))
	default:
		return body, bodyUnknown(http.StatusInternalServerError, "The body was read before the guard could compare it.",
			fmt.Errorf("an outer handler read or replaced the body, of which %d bytes are left: put the guard outside of that handler, "+
				"or have it give the body back with r.ContentLength to match", len(body)))
	}
}

// bodyLength returns the number of bytes in the body that the client sent, or -1 if it is unknown.
// Call bodyLength only after the body was read to its end. Without a Content-Length, the result is
// the number of bytes that handlers and readBody have read. If an outer handler replaces the body
// and does not set r.ContentLength, the result is wrong.
func bodyLength(r *http.Request) int64 {
	o := originalOf(r)
	counted := o != nil && o.uri == r.RequestURI
	switch {
	case r.ContentLength > 0, r.ContentLength == 0 && (!counted || o.length >= 0):
		return r.ContentLength
	case counted:
		return o.bytesRead
	default:
		return -1
	}
}

// isFirst reports whether the server calls h directly, or through an http.ServeMux only. No other
// handler can then have read any of the body.
func isFirst(r *http.Request, reqTarget target, h *guarded) bool {
	server, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
	if server == nil || r.URL.EscapedPath() != reqTarget.path || r.Form != nil || r.PostForm != nil || r.MultipartForm != nil {
		return false
	}
	root := server.Handler
	if root == nil {
		root = http.DefaultServeMux
	}
	if mux, ok := root.(*http.ServeMux); ok {
		var pattern string
		if root, pattern = mux.Handler(r); pattern != r.Pattern {
			return false
		}
	}
	first, ok := root.(*guarded)
	return ok && first == h
}
