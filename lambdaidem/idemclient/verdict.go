package idemclient

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"time"
)

// This file decides whether the result of an attempt is final or calls for a retry.

// codeInProgress is the code of a guard's 409 for a request that another attempt is still handling.
// Such a 409 is retried; any other 409 is final.
//
// The codes in this file and replayMark are copies of constants in lambdaidem. Importing lambdaidem
// would make every client depend on Lambda's event types.
const codeInProgress = "idempotency_in_progress"

// finalCodes are the codes of a guard's problem documents that make a response final, even if
// its status alone would call for a retry.
var finalCodes = map[string]bool{
	"idempotency_answer_unavailable": true,
	"idempotency_answer_unreadable":  true,
	"idempotency_attempt_abandoned":  true,
	"idempotency_body_unknown":       true,
	"idempotency_payload_mismatch":   true,
	"idempotency_permanent_failure":  true,
	"idempotency_record_foreign":     true,
	"idempotency_request_invalid":    true,
	"idempotency_streaming_refused":  true,
	"idempotency_write_invalid":      true,
}

// replayMark is the header that a guard adds to a replayed response by default.
const replayMark = "X-Idempotency-Replayed"

// verdict is the decision whether to retry after an attempt, with its reasons.
type verdict struct {
	retry      bool          // the request should be sent again
	code       string        // code of the response's problem document; empty if none was read
	err        error         // why there is no response, or why its code could not be read
	retryAfter time.Duration // the response's Retry-After; 0 if it has none
}

// judge decides whether to retry after an attempt that returned resp and err. If judge reads
// the body, it replaces resp.Body, so that the caller can still read all of it.
func judge(resp *http.Response, err error) verdict {
	if err != nil {
		return verdict{retry: !permanent(err), err: err}
	}
	if resp == nil || !isTemporary(resp.StatusCode) && resp.StatusCode != http.StatusConflict {
		return verdict{}
	}
	if resp.Header.Get(replayMark) == "true" { // a completed record never changes
		return verdict{}
	}
	v := verdict{retry: isTemporary(resp.StatusCode)}
	v.code, v.err = readCode(resp)
	switch {
	case v.err != nil:
		v.retry = true // reading the body failed, which counts as a network error
	case finalCodes[v.code]:
		v.retry = false
	case resp.StatusCode == http.StatusConflict:
		v.retry = v.code == codeInProgress
	}
	v.retryAfter = retryAfter(resp.Header, time.Now())
	return v
}

// isTemporary reports whether a status stands for a temporary failure, so that a later
// attempt may succeed.
func isTemporary(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	default:
		return false
	}
}

// permanent reports whether every further attempt would fail with the same error, such as an
// invalid certificate. All other errors count as network errors and are retried. An unnecessary
// retry does no harm, because it has the same key.
func permanent(err error) bool {
	if errors.Is(err, http.ErrSchemeMismatch) {
		return true
	}
	if e := (tls.RecordHeaderError{}); errors.As(err, &e) && string(e.RecordHeader[:]) == "HTTP/" {
		return true // the server speaks plain HTTP; http.Client turns the error into ErrSchemeMismatch only later
	}
	// Look for the errors of crypto/x509 both inside a tls.CertificateVerificationError, as
	// crypto/tls returns them, and without it, as another RoundTripper may return them.
	if e := (*tls.CertificateVerificationError)(nil); errors.As(err, &e) {
		return true
	}
	if e := (x509.UnknownAuthorityError{}); errors.As(err, &e) {
		return true
	}
	if e := (x509.HostnameError{}); errors.As(err, &e) {
		return true
	}
	e := x509.CertificateInvalidError{}
	return errors.As(err, &e)
}
