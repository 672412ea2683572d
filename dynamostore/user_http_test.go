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

// userMiddleware guards a handler over a store of DynamoDB that is never asked.
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

// userAnswer is an answer whose body was read.
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

// What is meant (K4, E1; Middleware: "A request that is not guarded, and its answer, pass
// through untouched"): the handler meets what it meets without the guard.
// It used to be otherwise: over a store with transactions the response writer is another one,
// which lacks http.Pusher.
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

// Expected: as above. Happened: the other writer claims to be an http.Flusher, an
// http.Hijacker and an io.ReaderFrom where the real one is none of them (behind
// http.TimeoutHandler, or an adapter), so a handler that asks begins to stream.
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

// Expected: as above. Happened: the handler gets a copy of the request, so the server
// does not find its MultipartForm, and does not remove its files: each upload stays
// in the temporary directory (on Lambda: /tmp of an environment that is used again).
func TestK4_UnguardedUploadsAreRemoved(t *testing.T) {
	uploads := func(_ http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1); err != nil { //nolint:gosec // of a test
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
		server.Close() // waits for the request's end
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

// Expected: as above. Happened: what an inner mux notes in the request (Pattern) is
// not seen by handlers outside of the guard, such as those that log or measure.
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

// What is meant (R1 "as it would be without the guard"; E1): what a handler sets in the
// header after it wrote the status is no header of the answer.
// It used to be otherwise: where the handler took the header before it enlisted, it still writes
// to that of the server, and the answer is sent later: a late header goes out, and
// a trailer goes out twice, as a header too.
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
