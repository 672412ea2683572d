package lambdaidem

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// writer returns the ResponseWriter for the handler. It is an http.Flusher or http.Hijacker if the
// server's ResponseWriter is one. It is an http.Pusher if the server's ResponseWriter is a Flusher
// and a Pusher but not a Hijacker, as under HTTP/2. http.ResponseController finds other methods by
// Unwrap.
func (p *passThrough) writer() http.ResponseWriter {
	w := passThroughWriter{p}
	_, flushes := p.w.(http.Flusher)
	_, hijacks := p.w.(http.Hijacker)
	pusher, pushes := p.w.(http.Pusher)
	switch {
	case flushes && hijacks:
		return struct {
			passThroughWriter
			passThroughFlusher
			passThroughHijacker
		}{w, passThroughFlusher(w), passThroughHijacker(w)}
	case flushes && pushes:
		return struct {
			passThroughWriter
			passThroughFlusher
			http.Pusher
		}{w, passThroughFlusher(w), pusher}
	case flushes:
		return struct {
			passThroughWriter
			passThroughFlusher
		}{w, passThroughFlusher(w)}
	case hijacks:
		return struct {
			passThroughWriter
			passThroughHijacker
		}{w, passThroughHijacker(w)}
	}
	return w
}

type passThroughWriter struct{ p *passThrough }

func (w passThroughWriter) Header() http.Header {
	if w.p.buffered == nil && w.p.run.enlist.used() {
		w.p.buffer()
	}
	if w.p.buffered != nil {
		return w.p.buffered.Header()
	}
	return w.p.w.Header()
}

func (w passThroughWriter) WriteHeader(status int) {
	informational := status >= 100 && status < 200 && status != http.StatusSwitchingProtocols // an informational status does not begin the response
	switch {
	case informational && w.p.buffered == nil:
		w.p.w.WriteHeader(status)
	case w.p.buffers():
		w.p.buffered.WriteHeader(status)
	default:
		w.p.w.WriteHeader(status)
	}
}

func (w passThroughWriter) Write(b []byte) (int, error) {
	if w.p.buffers() {
		return w.p.buffered.Write(b)
	}
	return w.p.w.Write(b)
}

func (w passThroughWriter) ReadFrom(r io.Reader) (int64, error) {
	if w.p.buffers() {
		return io.Copy(struct{ io.Writer }{w.p.buffered}, r)
	}
	return io.Copy(w.p.w, r) // io.Copy calls the ReadFrom method of w.p.w if there is one
}

// FlushError flushes the response for http.ResponseController. It returns an error if the
// response is buffered, because nothing of it may be sent yet.
func (w passThroughWriter) FlushError() error {
	if w.p.buffers() {
		return w.p.buffered.FlushError()
	}
	return http.NewResponseController(w.p.w).Flush()
}

type passThroughFlusher passThroughWriter

func (w passThroughFlusher) Flush() { _ = passThroughWriter(w).FlushError() }

type passThroughHijacker passThroughWriter

func (w passThroughHijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.p.buffers() {
		return nil, nil, streamRefused("a connection that is hijacked after a write was enlisted")
	}
	return http.NewResponseController(w.p.w).Hijack()
}

func (w passThroughWriter) Unwrap() http.ResponseWriter { return passThroughController{w} }

// passThroughController is for http.ResponseController, which calls Unwrap to look for methods that
// the handler's ResponseWriter lacks. Its method Hijack fails while the guard buffers the response.
// Otherwise the ResponseController could unwrap further and find the server's Hijack, and the
// buffered response would be lost.
type passThroughController struct{ passThroughWriter }

func (w passThroughController) Unwrap() http.ResponseWriter { return w.p.w }

func (w passThroughController) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return passThroughHijacker(w.passThroughWriter).Hijack()
}
