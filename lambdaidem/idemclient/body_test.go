package idemclient_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem/idemclient"
)

// Every attempt sends the whole body.
func TestC1_BodiesAreRewound(t *testing.T) {
	reader := func(s string) io.Reader { return struct{ io.Reader }{strings.NewReader(s)} } // a reader for which http.NewRequest sets no GetBody
	for name, c := range map[string]struct {
		body     io.Reader
		length   int64 // the ContentLength that the caller sets; 0: unknown
		chunked  bool
		attempts int
		want     string
		sent     int64 // ContentLength on the wire
	}{
		"GetBody":                  {strings.NewReader("body"), 4, false, 6, "body", 4},
		"GetBody beyond MaxBuffer": {strings.NewReader("longer body"), 11, false, 6, "longer body", 11},
		"none":                     {nil, 0, false, 6, "", 0},
		"NoBody":                   {http.NoBody, 0, false, 6, "", 0},
		"kept":                     {reader("body"), 0, false, 6, "body", 4},
		"kept, length said":        {reader("body"), 4, false, 6, "body", 4},
		"kept, in chunks":          {reader("body"), -1, true, 6, "body", -1},
		"kept, empty":              {reader(""), 0, false, 6, "", 0},
		"kept, at the bound":       {reader("12345678"), 0, false, 6, "12345678", 8},
		"over the bound":           {reader("123456789abcdef"), 0, false, 1, "123456789abcdef", 0},
		"said to be over":          {reader("123456789"), 9, false, 1, "123456789", 9},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base := &script{steps: []step{fails(errNetwork), answer(503, "busy")}}
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+host, c.body)
				if err != nil {
					t.Fatal(err)
				}
				r.ContentLength = c.length
				if c.chunked {
					r.TransferEncoding = []string{"chunked"}
				}
				resp, err := idemclient.New(base, []string{host}, func(o *idemclient.Options) { o.MaxBuffer = 8 }).RoundTrip(r)
				if c.attempts == 1 && !errors.Is(err, errNetwork) || c.attempts > 1 && err != nil {
					t.Fatal(err)
				}
				if resp != nil {
					_ = resp.Body.Close()
				}
				if len(base.sent) != c.attempts {
					t.Errorf("%d attempts", len(base.sent))
				}
				base.oneKey(t)
				for i, s := range base.sent {
					if s.body != c.want || s.length != c.sent {
						t.Errorf("attempt %d had %q, length %d", i+1, s.body, s.length)
					}
				}
			})
		})
	}
}

// If a body can't be read, or its length differs from ContentLength, RoundTrip returns an error
// before it sends anything, and closes the body.
func TestC1_ABodyThatCantBeKept(t *testing.T) {
	broken := errors.New("disk on fire")
	for name, c := range map[string]struct {
		body   io.Reader
		length int64
		want   string
	}{
		"broken":    {iotest.ErrReader(broken), 0, "the request's body could not be read: disk on fire"},
		"too short": {strings.NewReader("abc"), 4, "has 3 bytes; its ContentLength is 4"},
		"too long":  {strings.NewReader("abcde"), 4, "has 5 bytes; its ContentLength is 4"},
	} {
		t.Run(name, func(t *testing.T) {
			base := &script{steps: []step{answer(201, "")}}
			body := &closing{Reader: c.body}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+host, body)
			if err != nil {
				t.Fatal(err)
			}
			r.ContentLength = c.length
			_, err = client(base).Transport.RoundTrip(r) //nolint:bodyclose // returns an error
			if err == nil || !strings.Contains(err.Error(), c.want) || len(base.sent) != 0 || body.closed == 0 {
				t.Errorf("%v after %d attempts; closed %d times", err, len(base.sent), body.closed)
			}
		})
	}
}

// If a body's Read blocks and ignores the context, RoundTrip returns when the context ends.
func TestC1_ABodyThatStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("too late")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		body, _ := io.Pipe() // nobody writes
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+host, body)
		if err != nil {
			t.Fatal(err)
		}
		base := &script{steps: []step{answer(201, "")}}
		if _, err := client(base).Transport.RoundTrip(r); !errors.Is(err, why) || len(base.sent) != 0 { //nolint:bodyclose // returns an error
			t.Error(err)
		}
	})
}

// If GetBody fails, RoundTrip returns its error. No response is left open.
func TestC1_GetBodyFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("file is gone")
		base := &script{steps: []step{answer(503, "")}}
		r := post(t.Context(), t, "x")
		r.GetBody = func() (io.ReadCloser, error) { return nil, gone }
		if _, err := client(base).Do(r); !errors.Is(err, gone) || len(base.sent) != 1 { //nolint:bodyclose // returns an error
			t.Errorf("%v after %d attempts", err, len(base.sent))
		}
		base.closed(t)
	})
}

// Trailers that a body sets while it is read are sent, because the body is still sent in chunks.
func TestC1_TrailersSurvive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		n := 0
		tr := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			got = append(got, r.Trailer.Get("Sum"))
			if n++; n == 1 {
				w.WriteHeader(503)
			}
		}))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://api/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Trailer = http.Header{"Sum": nil}
		body := strings.NewReader("body")
		r.Body = io.NopCloser(io.MultiReader(body, iotest.ErrReader(io.EOF), readerFunc(func([]byte) (int, error) {
			r.Trailer.Set("Sum", "42")
			return 0, io.EOF
		})))
		r.ContentLength = -1
		resp, err := idemclient.New(tr, []string{"http://api"}).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if len(got) != 2 || got[0] != "42" || got[1] != "42" {
			t.Errorf("the server saw the trailers %q", got)
		}
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A body that is too large to keep in memory reaches base untouched. For a body that was kept, base
// gets a GetBody, so that base can rewind the body itself.
func TestC1_WhatBaseSees(t *testing.T) {
	for name, c := range map[string]struct {
		body   string
		length int64
		check  func(own io.ReadCloser, seen *http.Request) bool
	}{
		"said to be over": {"123456789", 9, func(own io.ReadCloser, seen *http.Request) bool { return seen.Body == own && seen.GetBody == nil }},
		"kept": {"body", -1, func(_ io.ReadCloser, seen *http.Request) bool {
			again, err := seen.GetBody()
			if err != nil {
				return false
			}
			data, err := io.ReadAll(again)
			return err == nil && string(data) == "body"
		}},
		"empty": {"", -1, func(_ io.ReadCloser, seen *http.Request) bool { return seen.Body == http.NoBody }},
	} {
		t.Run(name, func(t *testing.T) {
			own := &closing{Reader: strings.NewReader(c.body)}
			n := 0
			base := roundTripper(func(r *http.Request) (*http.Response, error) {
				if n++; !c.check(own, r) {
					t.Errorf("attempt %d has %+v", n, r)
				}
				_ = r.Body.Close()
				return answer(503, "")(r)
			})
			synctest.Test(t, func(t *testing.T) {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+host, own)
				if err != nil {
					t.Fatal(err)
				}
				r.ContentLength = c.length
				resp, err := idemclient.New(base, []string{host}, func(o *idemclient.Options) { o.MaxBuffer = 8 }).RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
			})
			if c.length < 0 && n != 6 || own.closed != 1 {
				t.Errorf("%d attempts, closed %d times", n, own.closed)
			}
		})
	}
}

// Each attempt has its own http.Request, because base may still read the body of an attempt that
// has ended.
func TestC1_EachAttemptIsARequestOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := make(map[*http.Request]io.ReadCloser)
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			seen[r] = r.Body
			return nil, errNetwork // and has not even closed the body yet
		})
		r := post(t.Context(), t, "x")
		if _, err := idemclient.New(base, []string{host}).RoundTrip(r); !errors.Is(err, errNetwork) { //nolint:bodyclose // returns an error
			t.Error(err)
		}
		if _, ours := seen[r]; len(seen) != 6 || ours {
			t.Errorf("6 attempts were %d requests", len(seen))
		}
		for r, body := range seen {
			if r.Body != body {
				t.Error("a later attempt took an earlier one's body away")
			}
		}
	})
}
