package lambdaidem

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/runcount"
)

// Middleware guards a net/http handler (V1). It can't know who calls, so it
// panics unless Options.Principal or Options.AnonymousCallers is set (F2).
//
// The route template is the http.ServeMux pattern that matched, so the
// middleware belongs inside the mux:
//
//	mux.Handle("POST /payments", guard.Middleware(next))
//
// The handler's answer is kept back until it is stored. A handler that flushes
// or hijacks gets an error from http.ResponseController, since a stream can't
// be stored and replayed. An answer to a request that is not guarded passes
// through untouched.
func (g *Guard) Middleware(next http.Handler) http.Handler {
	if g.opts.Principal == nil && !g.opts.AnonymousCallers {
		panic("lambdaidem: Middleware: set Options.Principal, or Options.AnonymousCallers if callers need not be told apart")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if !slices.Contains(g.opts.Methods, strings.ToUpper(r.Method)) {
			runcount.Add(ctx)
			g.opts.Observer.Observe(ctx, Event{Kind: EventBypassed})
			next.ServeHTTP(w, r) // K4: untouched, its body not even read
			return
		}
		req := g.readRequest(r)
		if g.bypasses(ctx, req) {
			if r.Body != nil { // what was read, and what may follow
				whole := io.MultiReader(bytes.NewReader(req.Body), r.Body)
				r = r.WithContext(ctx)
				r.Body = struct {
					io.Reader
					io.Closer
				}{whole, r.Body}
			}
			next.ServeHTTP(w, r)
			return
		}
		kept := &keptAnswer{header: make(http.Header)}
		var own Response
		resp, err := g.serve(ctx, req, func(ctx context.Context) (Response, error) {
			next.ServeHTTP(kept, inner(ctx, r, req))
			own = kept.response()
			return own, nil
		})
		if err != nil {
			panic(err) // a net/http handler returns none
		}
		if resp == nil {
			resp = &own
		}
		send(w, resp)
	})
}

// readRequest brings a request to the canonical form. Its body is read whole,
// or as far as it shows that it is too large (S2).
func (g *Guard) readRequest(r *http.Request) *Request {
	req := &Request{Method: strings.ToUpper(r.Method), Path: r.URL.EscapedPath(), Route: patternTemplate(r.Pattern),
		Query: r.URL.RawQuery, headers: r.Header.Values}
	for _, values := range r.Header {
		req.nHeaders += len(values)
	}
	if r.Body == nil {
		return req
	}
	var err error
	req.Body, err = io.ReadAll(io.LimitReader(r.Body, int64(g.opts.MaxBody)+1))
	switch bound := (*http.MaxBytesError)(nil); {
	case errors.As(err, &bound):
		req.malformed = bodyTooLarge(bound.Limit)
	case err != nil:
		req.malformed = &Error{Code: ErrRequestInvalid, Status: http.StatusBadRequest, Detail: "The body could not be read to its end.", Err: err}
	case len(req.Body) == 0 && (r.ContentLength > 0 || len(r.PostForm) > 0 || r.MultipartForm != nil):
		req.malformed = &Error{Code: ErrRequestInvalid, Status: http.StatusInternalServerError,
			Detail: "The body was read before the guard could compare it.",
			Err:    errors.New("an outer handler consumed the request's body; put the guard outside of it, or give the body back")}
	}
	return req
}

// inner is the request as the handler gets it.
func inner(ctx context.Context, r *http.Request, read *Request) *http.Request {
	r = r.WithContext(ctx)
	r.Body = io.NopCloser(bytes.NewReader(read.Body))
	return r
}

// patternTemplate is an http.ServeMux pattern without its method. A pattern
// that ends in {$} matches one path alone, so its slash is no subtree.
func patternTemplate(pattern string) string {
	if _, rest, ok := strings.Cut(pattern, " "); ok {
		pattern = strings.TrimLeft(rest, " \t")
	}
	return pattern
}

// keptAnswer is a response writer that keeps the answer back.
type keptAnswer struct {
	header http.Header
	sent   http.Header // as it was when the status was written; nil before
	status int
	body   bytes.Buffer
}

func (k *keptAnswer) Header() http.Header { return k.header }

func (k *keptAnswer) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %v", status)) // as net/http does
	}
	if k.sent != nil || status >= 100 && status < 200 { // informational answers are not kept
		return
	}
	k.status, k.sent = status, k.header.Clone()
}

func (k *keptAnswer) Write(p []byte) (int, error) {
	k.WriteHeader(http.StatusOK)
	return k.body.Write(p)
}

// FlushError refuses to stream; http.ResponseController calls it.
func (k *keptAnswer) FlushError() error {
	return streamRefused("an answer that is flushed")
}

func (k *keptAnswer) response() Response {
	k.WriteHeader(http.StatusOK)
	header := k.sent
	if _, set := header["Content-Type"]; !set && k.body.Len() > 0 && header.Get("Content-Encoding") == "" { // as net/http does
		header = header.Clone()
		header.Set("Content-Type", http.DetectContentType(k.body.Bytes()))
	}
	return Response{Status: k.status, Header: header, Body: k.body.String()}
}

// send writes an answer. What the caller's connection makes of it can't be
// helped here.
func send(w http.ResponseWriter, r *Response) {
	header := w.Header()
	for name, values := range r.Header {
		header[name] = values // as http.TimeoutHandler does, over what outer handlers set
	}
	for _, c := range r.Cookies {
		header.Add("Set-Cookie", c)
	}
	body := []byte(r.Body)
	if r.Base64 {
		if decoded, err := base64.StdEncoding.DecodeString(r.Body); err == nil {
			body = decoded
		}
	}
	w.WriteHeader(r.Status)
	_, _ = w.Write(body)
}
