package idemclient_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem/idemclient"
)

// once sends a request to url through base, and returns the response, the number of attempts and
// the error.
func once(t *testing.T, base *http.Transport, url string) (*http.Response, int, error) {
	t.Helper()
	t.Cleanup(base.CloseIdleConnections)
	n := 0
	counted := roundTripper(func(r *http.Request) (*http.Response, error) { n++; return base.RoundTrip(r) })
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("100"))
	if err != nil {
		t.Fatal(err)
	}
	rt := idemclient.New(counted, []string{r.URL.Host}, func(o *idemclient.Options) { o.InitialWait = time.Millisecond })
	resp, err := (&http.Client{Transport: rt}).Do(r)
	return resp, n, err
}

// If the server can't be authenticated, the client does not retry, and no request reaches the
// server's handler.
func TestC1_TLSFailuresAreFinal(t *testing.T) {
	served := 0
	quiet := log.New(io.Discard, "", 0)
	count := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ })
	secure, plain := httptest.NewUnstartedServer(count), httptest.NewUnstartedServer(count)
	secure.Config.ErrorLog, plain.Config.ErrorLog = quiet, quiet
	secure.StartTLS()
	plain.Start()
	defer secure.Close()
	defer plain.Close()

	resp, n, err := once(t, &http.Transport{}, secure.URL)
	if e := (*tls.CertificateVerificationError)(nil); !errors.As(err, &e) || n != 1 {
		t.Errorf("an unknown authority: %v after %d attempts", err, n)
	}
	closeAnswer(resp)

	pool := x509.NewCertPool()
	pool.AddCert(secure.Certificate())
	resp, n, err = once(t, &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "other.example", MinVersion: tls.VersionTLS12}}, secure.URL)
	if e := (x509.HostnameError{}); !errors.As(err, &e) || n != 1 {
		t.Errorf("another name: %v after %d attempts", err, n)
	}
	closeAnswer(resp)

	resp, n, err = once(t, &http.Transport{}, strings.Replace(plain.URL, "http://", "https://", 1))
	if !errors.Is(err, http.ErrSchemeMismatch) || n != 1 {
		t.Errorf("plain HTTP: %v after %d attempts", err, n)
	}
	closeAnswer(resp)
	if served != 0 {
		t.Errorf("%d requests were served", served)
	}
}

func closeAnswer(resp *http.Response) {
	if resp != nil {
		_ = resp.Body.Close()
	}
}

// Over HTTP/2, all attempts have the same key and body, and use one connection.
func TestC1_HTTP2(t *testing.T) {
	var keys, bodies []string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		keys, bodies = append(keys, r.Header.Get("Idempotency-Key")), append(bodies, string(body))
		switch len(keys) {
		case 1:
			panic(http.ErrAbortHandler) // resets the stream
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	base, ok := server.Client().Transport.(*http.Transport)
	if !ok {
		t.Fatalf("%T", server.Client().Transport)
	}
	resp, _, err := once(t, base, server.URL)
	if err != nil {
		t.Fatal(err)
	}
	closeAnswer(resp)
	if resp.ProtoMajor != 2 || resp.StatusCode != 200 || len(keys) != 3 || keys[0] != keys[1] || keys[1] != keys[2] || keys[0] == "" ||
		bodies[0] != "100" || bodies[1] != "100" || bodies[2] != "100" {
		t.Errorf("%s %d, keys %q, bodies %q", resp.Proto, resp.StatusCode, keys, bodies)
	}
}

// If base returns neither a response nor an error, http.Client reports that as an error.
func TestC1_NeitherAnswerNorError(t *testing.T) {
	base := roundTripper(func(*http.Request) (*http.Response, error) { return nil, nil }) //nolint:nilnil // the case under test
	if resp, err := client(base).Do(post(t.Context(), t, "x")); err == nil || !strings.Contains(err.Error(), "returned a nil *Response") {
		t.Error(err)
		closeAnswer(resp)
	}
}
