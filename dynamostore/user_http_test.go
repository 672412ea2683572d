package dynamostore_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// userMiddleware guards a handler with a DynamoDB store that receives no requests.
func userMiddleware(next http.HandlerFunc) http.Handler {
	store := dynamostore.New(dynamodb.New(dynamodb.Options{Region: "eu-west-1"}), "idempotency")
	return lambdaidem.New(store, func(o *lambdaidem.Options) {
		o.Namespace, o.Observer, o.AnonymousCallers = "shop", lambdaidem.Discard, true
	}).Middleware(next)
}

func userServer(t *testing.T, h http.Handler, http2 bool) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.EnableHTTP2 = http2
	if http2 {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return server
}

// userAnswer is a response without its body.
type userAnswer struct {
	StatusCode      int
	Header, Trailer http.Header
	Close           bool
}

func userSend(t *testing.T, server *httptest.Server, method, contentType string, body io.Reader) userAnswer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/x", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	resp, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return userAnswer{resp.StatusCode, resp.Header, resp.Trailer, resp.Close}
}

// An unguarded request passes through unchanged, so its handler gets a ResponseWriter with the same
// abilities as without the guard.
//
// In an earlier version, the ResponseWriter had no http.Pusher if the store had transactions.
func TestK4_UnguardedHTTP2CanPush(t *testing.T) {
	says := func(w http.ResponseWriter, _ *http.Request) {
		_, pusher := w.(http.Pusher)
		w.Header().Set("Pusher", fmt.Sprint(pusher))
	}
	bare := userSend(t, userServer(t, http.HandlerFunc(says), true), http.MethodGet, "", nil)
	got := userSend(t, userServer(t, userMiddleware(says), true), http.MethodGet, "", nil)
	if want, has := bare.Header.Get("Pusher"), got.Header.Get("Pusher"); want != has {
		t.Errorf("http.Pusher without the guard %s, behind it %s", want, has)
	}
}

// The ResponseWriter of an unguarded request has no abilities that the server's doesn't have.
//
// In an earlier version, it claimed to be an http.Flusher, an http.Hijacker and an io.ReaderFrom
// even inside an http.TimeoutHandler, so a handler that checked began to stream.
func TestK4_UnguardedWriterClaimsNoMoreThanThereIs(t *testing.T) {
	says := func(w http.ResponseWriter, _ *http.Request) {
		_, flusher := w.(http.Flusher)
		_, hijacker := w.(http.Hijacker)
		w.Header().Set("Can", fmt.Sprint("flush ", flusher, ", hijack ", hijacker))
	}
	get := func(h http.Handler) string {
		return userSend(t, userServer(t, http.TimeoutHandler(h, time.Minute, ""), false), http.MethodGet, "", nil).Header.Get("Can")
	}
	if want, has := get(http.HandlerFunc(says)), get(userMiddleware(says)); want != has {
		t.Errorf("without the guard %s; behind it %s", want, has)
	}
}

// The server removes the temporary files of an unguarded upload.
//
// In an earlier version, the handler got a copy of the request. The server did not find the copy's
// MultipartForm, so each upload remained in the temporary directory (on Lambda, the /tmp of an
// environment that is reused).
func TestK4_UnguardedUploadsAreRemoved(t *testing.T) {
	uploads := func(_ http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1); err != nil { //nolint:gosec // the size does not matter in a test
			t.Error(err)
		}
	}
	left := func(h http.Handler) int {
		dir := t.TempDir()
		t.Setenv("TMPDIR", dir)
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		part, err := form.CreateFormFile("file", "a.bin")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = part.Write(make([]byte, 11<<20))
		_ = form.Close()
		server := userServer(t, h, false)
		userSend(t, server, http.MethodPut, form.FormDataContentType(), &body)
		server.Close() // waits for the end of the request
		files, err := filepath.Glob(filepath.Join(dir, "multipart-*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			_ = os.Remove(f)
		}
		return len(files)
	}
	if want, got := left(http.HandlerFunc(uploads)), left(userMiddleware(uploads)); want != got {
		t.Errorf("temporary files left behind: without the guard %d, behind it %d", want, got)
	}
}

// Handlers outside the guard, such as those that log, see the Pattern that an inner mux sets on an
// unguarded request.
//
// In an earlier version, they did not, because the handler got a copy of the request.
func TestK4_UnguardedRequestIsTheHandlersOwn(t *testing.T) {
	seen := func(guarded bool) (pattern string) {
		mux := http.NewServeMux()
		mux.HandleFunc("GET /x", func(http.ResponseWriter, *http.Request) {})
		var next http.Handler = mux
		if guarded {
			next = userMiddleware(mux.ServeHTTP)
		}
		outer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r)
			pattern = r.Pattern
		})
		userSend(t, userServer(t, outer, false), http.MethodGet, "", nil)
		return pattern
	}
	if want, got := seen(false), seen(true); want != got {
		t.Errorf("the pattern, outside of the guard: without it %q, with it %q", want, got)
	}
}

// A header that the handler sets after it has written the status is not sent, as without the guard.
//
// In an earlier version, a handler that called Header before it enlisted still changed the server's
// header. The buffered response was sent later, so a late header was sent, and a trailer was sent
// twice, once as a header.
func TestE1_KeptBackAnswersAreThoseOfTheHandler(t *testing.T) {
	b := newUserBank(t)
	b.set(t, "shop", 0)
	guard := b.guard.With(func(o *lambdaidem.Options) { o.AnonymousCallers = true })
	for name, h := range map[string]func(http.ResponseWriter, http.Header){
		"trailer": func(w http.ResponseWriter, header http.Header) {
			header.Set("Trailer", "X-T")
			_, _ = io.WriteString(w, "hello")
			header.Set("X-T", "v")
		},
		"late header": func(w http.ResponseWriter, header http.Header) {
			w.WriteHeader(200)
			header.Set("X-Late", "v")
		},
	} {
		t.Run(name, func(t *testing.T) {
			with := func(enlist func(context.Context)) http.HandlerFunc {
				return func(w http.ResponseWriter, r *http.Request) {
					header := w.Header()
					enlist(r.Context())
					h(w, header)
				}
			}
			bare := userSend(t, userServer(t, with(func(context.Context) {}), false), http.MethodGet, "", nil)
			got := userSend(t, userServer(t, guard.Middleware(with(func(ctx context.Context) { b.add(ctx, "shop", 1) })), false), http.MethodGet, "", nil)
			bare.Header.Del("Date")
			got.Header.Del("Date")
			if want, has := fmt.Sprint(bare.Header, bare.Trailer), fmt.Sprint(got.Header, got.Trailer); want != has {
				t.Errorf("header and trailer without the guard %s, behind it %s", want, has)
			}
		})
	}
}
