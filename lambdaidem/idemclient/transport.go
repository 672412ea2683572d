package idemclient

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Transport is an [http.RoundTripper] that makes guarded requests safe to retry, and retries them.
// Create one with [New]. It is safe for concurrent use.
type Transport struct {
	base  http.RoundTripper
	hosts map[origin]bool
	opts  Options // with the defaults filled in
}

// New returns a Transport that sends requests through base, or [http.DefaultTransport] if base is
// nil. The Transport adds keys to requests for the given hosts only. New panics if hosts is empty,
// or if a host or an option is not valid.
//
// A host is an exact name or address with an optional port, without wildcards:
//
//   - "api.example.com" means https on port 443, and "api.example.com:8443" https on that port.
//   - "http://api.internal:8080" means plain HTTP.
//   - A loopback host ("localhost:8080", "127.0.0.1", "[::1]:8080") means both https and http, on
//     the given port or on their default ports.
//
// Upper case, a trailing dot, and the Unicode or xn-- form of an international name make no
// difference.
func New(base http.RoundTripper, hosts []string, optFns ...func(*Options)) *Transport {
	if base == nil {
		base = http.DefaultTransport
	}
	if len(hosts) == 0 {
		panic("idemclient: New: hosts is empty; no request would ever have a key")
	}
	t := &Transport{base: base, hosts: make(map[origin]bool)}
	for i, entry := range hosts {
		origins, err := parseHost(entry)
		if err != nil {
			panic(fmt.Sprintf("idemclient: New: hosts[%d] is %q; %v", i, entry, err))
		}
		for _, o := range origins {
			t.hosts[o] = true
		}
	}
	o := Options{}.withDefaults()
	for _, fn := range optFns {
		fn(&o)
	}
	t.opts = o.withDefaults()
	t.opts.check()
	return t
}

// attemptHeader is the name of the header that the transport adds to each retry. The value is the
// number of the attempt, 2 for the first retry. The header lets lambdaidem.Options.Repeated
// recognize a retry, which makes a replay cheaper.
const attemptHeader = "Idempotency-Attempt"

// RoundTrip sends a request. If the Transport guards the request, RoundTrip adds a key and may send
// it again; see the package's documentation. RoundTrip returns the response or the error of the
// last attempt, and closes the responses of earlier attempts. If the request's context ends while
// RoundTrip waits for the next attempt, the error wraps the context's cause. If the request's key
// is invalid or its body can't be read, RoundTrip returns an error without sending the request.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.guards(req) {
		outReq := t.withoutKey(req)
		resp, err := t.base.RoundTrip(outReq)
		nameRequest(resp, outReq)
		return resp, err //nolint:wrapcheck // an unguarded request gets base's error unchanged
	}
	header, err := t.headerWithKey(req)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	outReq, nextBody, err := repeatable(req, t.opts.MaxBuffer)
	if err != nil {
		return nil, err
	}
	waits := &backoff.ExponentialBackOff{InitialInterval: t.opts.InitialWait, MaxInterval: t.opts.MaxWait,
		Multiplier: 2, RandomizationFactor: 0.5}
	for n := 1; ; n++ {
		outReq.Header = header.Clone() // base may still use the header of the attempt before
		if n > 1 {
			outReq.Header.Set(attemptHeader, strconv.Itoa(n))
		}
		start := time.Now()
		resp, err := t.base.RoundTrip(outReq)
		took := time.Since(start)
		nameRequest(resp, outReq)
		v := judge(resp, err)
		wait := sum(waits.NextBackOff(), min(v.retryAfter, t.opts.MaxRetryAfter))
		v.retry = v.retry && n < t.opts.MaxAttempts && nextBody != nil && v.retryAfter <= t.opts.MaxRetryAfter && mayWait(req, wait)
		t.observe(req, n, resp, v, took, wait)
		if !v.retry {
			return resp, err
		}
		discard(resp)
		if ended := sleep(req, wait); ended != nil {
			return nil, fmt.Errorf("idemclient: stopped before attempt %d, after %s: %w", n+1, resultText(resp, err), ended)
		}
		body, err := nextBody()
		if err != nil {
			return nil, fmt.Errorf("idemclient: GetBody failed before attempt %d: %w", n+1, err)
		}
		outReq = outReq.WithContext(outReq.Context()) // a copy: base may still read the request of the attempt before
		outReq.Body = body
	}
}

// CloseIdleConnections closes the idle connections of the base RoundTripper, if that has a
// method CloseIdleConnections. [http.Client.CloseIdleConnections] calls it.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// observe calls Options.Observe, if it is set, with the result of attempt n.
func (t *Transport) observe(req *http.Request, n int, resp *http.Response, v verdict, took, wait time.Duration) {
	if t.opts.Observe == nil {
		return
	}
	a := Attempt{Number: n, Method: req.Method, Host: req.URL.Host, Code: v.code, Err: v.err, Duration: took, Retry: v.retry}
	if resp != nil {
		a.Status = resp.StatusCode
	}
	if v.retry {
		a.Wait = wait
	}
	t.opts.Observe(req.Context(), a)
}

// resultText returns the error or the status of an attempt as text, for an error message.
func resultText(resp *http.Response, err error) string {
	if err != nil {
		return err.Error()
	}
	return strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode)
}
