package dynamostore

import (
	"net"
	"net/http"
	"net/http/httptrace"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// connects calls the hooks once for each outcome of getting a connection, like an HTTP client that
// retries by itself within one attempt. It then fails like f.
func connects(f fault, outcomes ...bool) fault {
	return func(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
		hooks := httptrace.ContextClientTrace(r.Context())
		for _, got := range outcomes {
			hooks.GetConn("test:443")
			if got {
				hooks.GotConn(httptrace.GotConnInfo{})
			}
		}
		return f(r, next)
	}
}

// An HTTP client that retries by itself delivers the lock, loses the response, and then can't
// connect or is throttled. Its last error says nothing about the first delivery.
func TestX8_TheLastErrorOfARetryingHTTPClientProvesNothing(t *testing.T) {
	const unknown, sure = false, true
	noDial := func(*http.Request, dynamodb.HTTPClient) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	for _, c := range []struct {
		name       string
		fault      fault
		reason     lambdaidem.Reason
		notApplied bool
	}{
		{"delivered, then no connection", connects(noDial, true, false), lambdaidem.ReasonUnreachable, unknown},
		{"delivered, then a stale dial error", connects(noDial, true), lambdaidem.ReasonUnreachable, unknown},
		{"no connection, then delivered", connects(noDial, false, true), lambdaidem.ReasonUnreachable, unknown},
		{"no connection twice", connects(noDial, false, false), lambdaidem.ReasonUnreachable, sure},
		{"a dial error without hooks", noDial, lambdaidem.ReasonUnreachable, unknown},
		{"delivered, then throttled on another connection", connects(throttle, true, true), lambdaidem.ReasonThrottled, unknown},
		{"no connection, then throttled", connects(throttle, false, true), lambdaidem.ReasonThrottled, sure},
		{"throttled", connects(throttle, true), lambdaidem.ReasonThrottled, sure},
	} {
		for _, transport := range []Transport{TransportSDK, TransportDirect} {
			t.Run(c.name+"/"+string(transport), func(t *testing.T) {
				client, _ := inMemory(c.fault, c.fault, c.fault)
				_, err := New(client, "test", quick, func(o *Options) { o.Transport = transport }).Acquire(t.Context(), claim)
				wantStoreError(t, err, opAcquire, c.reason, c.notApplied)
			})
		}
	}
}

// If one attempt may have been delivered, the whole call is unknown, even if the later attempts
// were certainly not applied.
func TestX8_ALaterAttemptWithoutAConnectionProvesNothingAboutAnEarlierOne(t *testing.T) {
	for _, transport := range []Transport{TransportSDK, TransportDirect} {
		client, _ := inMemory(connects(loseRequest, true), refuseConnection, refuseConnection)
		_, err := New(client, "test", quick, func(o *Options) { o.Transport = transport }).Acquire(t.Context(), claim)
		wantStoreError(t, err, opAcquire, lambdaidem.ReasonUnreachable, false)
	}
}
