package idemclient_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem/idemclient"
)

// This file tests the client against a server that misbehaves on the wire before it answers
// correctly.

const paid = "HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\npaid"

// wire starts a server that handles each connection with the next function of behave, and repeats
// the last one. It returns a transport to the server and the number of connections so far.
func wire(t *testing.T, behave ...func(net.Conn, *bufio.Reader)) (*http.Transport, *int) {
	t.Helper()
	p, tr := listen(t)
	n := new(int)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := p.Accept()
			if err != nil {
				return
			}
			f := behave[min(*n, len(behave)-1)]
			*n++
			wg.Go(func() {
				f(conn, bufio.NewReader(conn))
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = p.Close()
		tr.CloseIdleConnections()
		wg.Wait()
	})
	return tr, n
}

// take reads one request, including its body. It returns nil at the end of the connection.
func take(t *testing.T, r *bufio.Reader) *http.Request {
	req, err := http.ReadRequest(r)
	if err != nil {
		if !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		return nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil || string(body) != "100" {
		t.Errorf("the body came as %q, %v", body, err)
	}
	return req
}

// says returns a function for wire that answers each request with the same text until the client
// closes the connection.
func says(t *testing.T, text string) func(net.Conn, *bufio.Reader) {
	return func(c net.Conn, r *bufio.Reader) {
		for take(t, r) != nil {
			_, _ = io.WriteString(c, text)
		}
	}
}

// Whatever happens to an attempt before its response arrives, the next attempt gets the
// response.
func TestC1_AttemptsThatDieOnTheWire(t *testing.T) {
	once := func(text string) func(net.Conn, *bufio.Reader) {
		return func(c net.Conn, r *bufio.Reader) {
			take(t, r)
			_, _ = io.WriteString(c, text)
		}
	}
	stall := func(text string) func(net.Conn, *bufio.Reader) {
		return func(c net.Conn, r *bufio.Reader) {
			once(text)(c, r)
			_, _ = io.Copy(io.Discard, r) // until the client closes the connection
		}
	}
	for name, c := range map[string]struct {
		first func(net.Conn, *bufio.Reader)
		conns int
	}{
		"closed before the request was read":        {func(net.Conn, *bufio.Reader) {}, 2},
		"closed in the middle of the request":       {func(_ net.Conn, r *bufio.Reader) { _, _ = r.ReadString('\n') }, 2},
		"closed after the request was read":         {once(""), 2},
		"half a header":                             {once("HTTP/1.1 201 Created\r\nX: "), 2},
		"no HTTP":                                   {once("\x16\x03\x01 what?\r\n\r\n"), 2},
		"a header without end":                      {once("HTTP/1.1 201 Created\r\nX: " + strings.Repeat("x", 2<<20)), 2},
		"silence":                                   {stall(""), 2},
		"silence in the header":                     {stall("HTTP/1.1 2"), 2},
		"silence in a dropped answer":               {stall("HTTP/1.1 503 Busy\r\nContent-Length: 10\r\n\r\nbusy"), 2},
		"silence in a problem document that is cut": {once("HTTP/1.1 409 Conflict\r\nContent-Type: application/problem+json\r\nContent-Length: 99\r\n\r\n{\"code\":"), 2},
		"a dropped answer without end":              {stall("HTTP/1.1 503 Busy\r\nContent-Length: 9999999999\r\n\r\n" + strings.Repeat("x", 1<<20)), 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr, conns := wire(t, c.first, says(t, paid))
				tr.ResponseHeaderTimeout = 5 * time.Second
				began := time.Now()
				resp, err := pay(t.Context(), tr, "100")
				if err != nil {
					t.Fatal(err)
				}
				if status, body := read(t, resp); status != 201 || body != "paid" || *conns != c.conns || time.Since(began) > 7*time.Second {
					t.Errorf("%d %q over %d connections after %v", status, body, *conns, time.Since(began))
				}
			})
		})
	}
}

// The client reads the body of a response that it drops, so that the next attempt can use the same
// connection.
func TestC1_ConnectionsAreUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := "HTTP/1.1 503 Busy\r\nContent-Length: 30000\r\n\r\n" + strings.Repeat("x", 30000)
		tr, conns := wire(t, func(c net.Conn, r *bufio.Reader) {
			for _, text := range []string{busy, busy, paid} {
				take(t, r)
				_, _ = io.WriteString(c, text)
			}
		})
		resp, err := pay(t.Context(), tr, "100")
		if err != nil {
			t.Fatal(err)
		}
		if status, _ := read(t, resp); status != 201 || *conns != 1 {
			t.Errorf("%d over %d connections", status, *conns)
		}
	})
}

// With Expect: 100-continue, each attempt sends the body once the server asks for it. The body
// is not sent to a server that has already responded with an error.
func TestC1_ExpectContinue(t *testing.T) {
	for name, first := range map[string]func(*testing.T) func(net.Conn, *bufio.Reader){
		"continue, then busy": func(t *testing.T) func(net.Conn, *bufio.Reader) {
			return func(c net.Conn, r *bufio.Reader) {
				req, err := http.ReadRequest(r)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
				_, _ = io.ReadAll(req.Body)
				_, _ = io.WriteString(c, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			}
		},
		"busy at once": func(t *testing.T) func(net.Conn, *bufio.Reader) {
			return func(c net.Conn, r *bufio.Reader) {
				if _, err := http.ReadRequest(r); err != nil {
					t.Error(err)
					return
				}
				_, _ = io.WriteString(c, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			}
		},
		"not understood": func(t *testing.T) func(net.Conn, *bufio.Reader) {
			return func(c net.Conn, r *bufio.Reader) {
				take(t, r) // the client sends the body without a 100 response after ExpectContinueTimeout
				_, _ = io.WriteString(c, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr, conns := wire(t, first(t), says(t, paid))
				tr.ExpectContinueTimeout = time.Second
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, api, strings.NewReader("100"))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Expect", "100-continue")
				resp, err := (&http.Client{Transport: idemclient.New(tr, []string{"http://api"})}).Do(r)
				if err != nil {
					t.Fatal(err)
				}
				if status, body := read(t, resp); status != 201 || body != "paid" || *conns != 2 {
					t.Errorf("%d %q over %d connections", status, body, *conns)
				}
			})
		})
	}
}

// A server that never responds delays the caller only until the context ends.
func TestC1_SilenceEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, conns := wire(t, func(_ net.Conn, r *bufio.Reader) {
			take(t, r)
			_, _ = io.Copy(io.Discard, r)
		})
		tr.ResponseHeaderTimeout = 3 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		_, err := pay(ctx, tr, "100") //nolint:bodyclose // returns an error
		if err == nil || time.Since(began) > 10*time.Second || *conns < 3 {
			t.Errorf("%v after %v and %d attempts", err, time.Since(began), *conns)
		}
	})
}

// If the caller closes a response without reading it to the end, its connection is closed.
func TestC1_AnAnswerThatIsNotReadIsClosedByItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := false
		tr, _ := wire(t, func(c net.Conn, r *bufio.Reader) {
			take(t, r)
			_, _ = io.WriteString(c, "HTTP/1.1 500 Oops\r\nContent-Type: application/problem+json\r\nContent-Length: 9999999\r\n\r\n"+strings.Repeat(" ", 100<<10))
			_, _ = io.Copy(io.Discard, r)
			gone = true
		})
		resp, err := pay(t.Context(), tr, "100", func(o *idemclient.Options) { o.MaxAttempts = 1 })
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		synctest.Wait()
		if !gone {
			t.Error("the connection is still open")
		}
	})
}
