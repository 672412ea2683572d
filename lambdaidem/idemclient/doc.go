// Package idemclient is the client of an idempotent API: an [http.RoundTripper] that gives
// each guarded request an idempotency key, and repeats the request with that key until it
// gets a final answer.
//
//	client := &http.Client{
//		Transport: idemclient.New(nil, []string{"api.example.com"}),
//		Timeout:   30 * time.Second,
//	}
//
// It depends neither on AWS nor on Lambda, and works with every server that accepts an
// Idempotency-Key header. It also knows the error codes of a lambdaidem guard, and which of
// them are final.
//
// # Guarded requests
//
// POST and PATCH requests over https to the hosts that were given to [New] are guarded. All
// others are sent once, unchanged. Name only hosts whose POST and PATCH routes honor the key:
// a host that ignores it would carry out every retry. [Options.Methods] and [Options.Skip]
// change which requests are guarded. If GET is among the methods, GET requests get keys and
// retries too.
//
// # Keys
//
// The key of a request is the first of these: the one that its header already has; the one of
// [WithKey] in its context; for a redirect, the one of the redirected request; and the one of
// [Options.NewKey], which is [RandomKey] by default. All attempts of a request, and the
// requests of its redirects, have the same key. The response's Request.Header has it.
//
// After an error, a 5xx or a 409 for a request in progress, nobody knows whether the request
// was carried out. To repeat it later, the caller needs its key. So give the key by WithKey
// from the start, and to repeat the request after a crash, store it or derive it from the
// number of the order. The same request under a new random key is a second payment.
//
// A redirect to another host, or from https to http, is sent without a key, even if the
// caller has set one.
//
// # Retries
//
//	no response: a network error     but not a certificate that is refused, plain HTTP on an
//	                                 https port, or a context that has ended
//	408, 425, 429, 500, 502, 503,    unless the problem document has a final code; see below
//	504
//	409 idempotency_in_progress      any other 409 is the application's, and final
//	a problem document that is cut   its code is unknown
//
// All other responses are final. So is a 500 or 409 with one of these codes, because a retry
// would get it again: idempotency_answer_unavailable, idempotency_answer_unreadable,
// idempotency_attempt_abandoned, idempotency_body_unknown, idempotency_payload_mismatch,
// idempotency_permanent_failure, idempotency_record_foreign, idempotency_request_invalid,
// idempotency_streaming_refused, idempotency_write_invalid. A response with the header
// X-Idempotency-Replayed: true is final whatever its status, because a completed record never
// changes. With the other codes of the guard (idempotency_condition_failed,
// idempotency_not_begun, idempotency_out_of_time, idempotency_outcome_unknown,
// idempotency_retryable_failure, idempotency_store_unavailable) and with unknown codes the
// status decides. So it does if a problem document has a Content-Encoding, which happens only
// if the caller has asked for one: the document is not read, and a 409 is final.
//
// A response counts when its header has arrived. If its body is cut, the caller gets the
// error from reading it, because it may have used the first part already. It is safe to send
// the same request again, with the key in the response's Request.Header: the guard replays
// the response.
//
// # Waits
//
// The wait before a retry grows exponentially, with jitter, and is never shorter than the
// server's Retry-After. If Retry-After is longer than [Options.MaxRetryAfter], or the wait
// would end after the deadline of the context ([http.Client.Timeout] sets one), there is no
// retry: the caller gets the last response or error at once. Retry-After is still in it.
//
// A server that accepts a request and does not respond uses up all of the time. Set
// [http.Transport.ResponseHeaderTimeout] to limit each attempt. Its error counts as a network
// error.
//
// # Bodies
//
// A retry gets its body from the request's GetBody, which [http.NewRequest] sets for bytes and
// strings. A body without GetBody is read into memory before the first attempt if it has at
// most [Options.MaxBuffer] bytes. It is then sent with a Content-Length, which the guard needs
// anyway. A longer body is sent once, with a key and without retries.
package idemclient
