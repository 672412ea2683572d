package lambdaidem_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemclient"
)

// After FailOpen, the guard withholds an answer that is not stored exactly if a client of package
// idemclient would not retry after it.
func TestX5_AFailureThatEndsAClientsRetriesIsNotToldUnlessItIsStored(t *testing.T) {
	codes := []lambdaidem.Code{"", "card_declined",
		lambdaidem.ErrAnswerUnavailable, lambdaidem.ErrAnswerUnreadable, lambdaidem.ErrAttemptAbandoned, lambdaidem.ErrBodyUnknown,
		lambdaidem.ErrConditionFailed, lambdaidem.ErrInProgress, lambdaidem.ErrOutcomeUnknown, lambdaidem.ErrOutOfTime,
		lambdaidem.ErrPayloadMismatch, lambdaidem.ErrPermanent, lambdaidem.ErrRecordForeign, lambdaidem.ErrRequestInvalid,
		lambdaidem.ErrStoreUnavailable, lambdaidem.ErrStreaming, lambdaidem.ErrWriteInvalid,
	}
	for status := 400; status < 600; status++ {
		for _, code := range codes {
			body := fmt.Sprintf(`{"code":%q}`, code)
			retried := retries(t, status, body)
			if told := isTold(t, func(context.Context, request) (response, error) { return response{StatusCode: status, Body: body}, nil }, status, body); told != retried {
				t.Errorf("%d with code %q: the client retries: %v; it is told: %v", status, code, retried, told)
			}
		}
		if told := isTold(t, func(context.Context, request) (response, error) {
			return response{}, lambdaidem.Reject(status, "no_funds", "No.")
		}, status, "no_funds"); told != retries(t, status, "") {
			t.Errorf("Reject with %d: it is told: %v", status, told)
		}
	}
	for _, status := range []int{100, 199, 600, 999} { // the gateway sends 502
		if !isTold(t, func(context.Context, request) (response, error) { return response{StatusCode: status}, nil }, status, "") {
			t.Errorf("%d is not told", status)
		}
	}
}

// isTold sends a request that fails open, and whose answer can't be stored. It reports whether the
// client is told the status, and a body that contains text.
func isTold(t *testing.T, h handler, status int, text string) (told bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(h, failOpen)
		r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
		r.store.failAlways(complete, refused(lambdaidem.ReasonThrottled))
		r.store.failAlways(release, refused(lambdaidem.ReasonThrottled))
		out := r.send(t, first())
		told = out.StatusCode == status && strings.Contains(out.Body, text)
	})
	return told
}

// retries reports whether a client of package idemclient sends a request again after a response.
func retries(t *testing.T, status int, body string) bool {
	t.Helper()
	sent := 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	network := roundTrip(func(r *http.Request) (*http.Response, error) {
		if sent++; sent > 1 {
			cancel()
			return nil, errWire
		}
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/problem+json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	})
	synctest.Test(t, func(t *testing.T) {
		client := &http.Client{Transport: idemclient.New(network, []string{"api.example.com"})}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://api.example.com/payments", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err == nil {
			_ = resp.Body.Close()
		}
	})
	return sent > 1
}
