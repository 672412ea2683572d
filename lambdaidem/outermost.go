package lambdaidem

import (
	"context"
	"io"
	"net/http"
)

// Outermost records the URL, the host and the body length of each request as the client sent them,
// for a [Guard.Middleware] inside next. Put Outermost around all other handlers:
//
//	http.ListenAndServe(addr, lambdaidem.Outermost(handler))
//
// Without Outermost, the middleware refuses a request with an error that asks for Outermost in two
// cases:
//
//   - The request does not come from a net/http server and so has no RequestURI, as with lambdaurl
//     of aws-lambda-go.
//   - The body has no Content-Length and comes through other handlers, which may have read some of
//     the body.
//
// Outermost does not change the response.
func Outermost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o := originalOf(r); o != nil && o.uri == r.RequestURI { // another Outermost is around this one
			next.ServeHTTP(w, r)
			return
		}
		o := &original{uri: r.RequestURI, host: r.Host, length: r.ContentLength}
		if o.uri == "" { // not from a net/http server: a ContentLength of 0 may mean unknown
			o.uri = r.URL.RequestURI()
			if r.ContentLength == 0 && r.Body != nil && r.Body != http.NoBody {
				o.length = -1
			}
		}
		inner := r.WithContext(context.WithValue(r.Context(), originalKey{}, o))
		inner.RequestURI = o.uri
		if r.Body != nil && r.Body != http.NoBody {
			inner.Body = &countedBody{r.Body, o}
		}
		next.ServeHTTP(w, inner)
	})
}

// original is a copy of the parts of a request that handlers around the guarded one may change. The
// function Outermost makes the copy before those handlers run.
type original struct {
	uri       string // the request URI
	host      string // the Host header
	length    int64  // the declared Content-Length; -1 if unknown
	bytesRead int64  // the number of bytes that were read from the body
}

type originalKey struct{}

func originalOf(r *http.Request) *original {
	o, _ := r.Context().Value(originalKey{}).(*original)
	return o
}

// countedBody is a request body that counts the bytes that handlers read from it, in
// original.bytesRead. bodyLength uses the count as the length of a body without a Content-Length.
type countedBody struct {
	io.ReadCloser
	o *original
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.o.bytesRead += int64(n)
	return n, err
}
