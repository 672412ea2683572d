package idemclient

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"
)

// This file decides whether the response of an attempt is final.

// Codes of a guard's problem documents that decide more than the status does. They and
// replayMark are copies, because this package must not import lambdaidem.
const codeInProgress = "idempotency_in_progress"

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

// replayMark is the header with which a guard marks a replay by default.
const replayMark = "X-Idempotency-Replayed"

// maxProblem is how many bytes of a problem document are read. The guard's own have
// about 400.
const maxProblem = 64 << 10

// verdict says what to do after an attempt.
type verdict struct {
	retry bool
	code  string
	err   error         // why there is no response, or why its code could not be read
	after time.Duration // Retry-After
}

// judge decides whether the response is final. What it reads of the body can be read from
// resp.Body again.
func judge(resp *http.Response, err error) verdict {
	if err != nil {
		return verdict{retry: !permanent(err), err: err}
	}
	if resp == nil || !passing(resp.StatusCode) && resp.StatusCode != http.StatusConflict {
		return verdict{}
	}
	if resp.Header.Get(replayMark) == "true" { // a completed record never changes
		return verdict{}
	}
	v := verdict{retry: passing(resp.StatusCode)}
	v.code, v.err = readCode(resp)
	switch {
	case v.err != nil:
		v.retry = true // as if there were no response
	case finalCodes[v.code]:
		v.retry = false
	case resp.StatusCode == http.StatusConflict:
		v.retry = v.code == codeInProgress
	}
	v.after = retryAfter(resp.Header, time.Now())
	return v
}

// passing reports whether a status says that a later attempt may succeed.
func passing(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	default:
		return false
	}
}

// permanent reports whether the next attempt would meet the error again. Every other error
// counts as a network error: with the key, an unnecessary attempt does no harm.
func permanent(err error) bool {
	if errors.Is(err, http.ErrSchemeMismatch) {
		return true
	}
	if e := (tls.RecordHeaderError{}); errors.As(err, &e) && string(e.RecordHeader[:]) == "HTTP/" {
		return true // of which http.Client makes ErrSchemeMismatch later
	}
	// crypto/tls wraps what crypto/x509 says; a transport of another make may not.
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

// readCode returns the "code" of a problem document (RFC 9457), or "" if there is none. The
// error is that of reading the body.
func readCode(resp *http.Response) (string, error) {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // empty if it is none
	if media != "application/problem+json" || resp.Header.Get("Content-Encoding") != "" || resp.Body == nil {
		return "", nil
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem+1))
	read := io.Reader(bytes.NewReader(data))
	if err != nil {
		resp.Body = joined{io.MultiReader(read, failing{err}), resp.Body}
		return "", err
	}
	resp.Body = joined{io.MultiReader(read, resp.Body), resp.Body}
	if len(data) > maxProblem {
		return "", nil
	}
	var doc struct {
		Code string `json:"code"`
	}
	_ = json.Unmarshal(data, &doc) // what is no such document has no code
	return doc.Code, nil
}

// failing is the rest of a body that could not be read.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
