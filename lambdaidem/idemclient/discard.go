package idemclient

import (
	"io"
	"net/http"
	"time"
)

// discard closes the body of a response that is followed by a retry. Before that, it reads the
// body, within the limits discardBytes and discardTime, so that the connection can be reused.
func discard(resp *http.Response) {
	if resp == nil || resp.Body == nil {
		return
	}
	timer := time.AfterFunc(discardTime, func() { _ = resp.Body.Close() }) // ends a read that hangs
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, resp.Body, discardBytes)
	_ = resp.Body.Close()
}

// Limits for reading the body of a response that is followed by a retry. Its connection can
// be reused only if the body has been read to the end.
const (
	discardBytes = 64 << 10
	discardTime  = time.Second
)
