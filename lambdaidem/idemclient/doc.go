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
// POST and PATCH requests to the hosts that were given to [New] are guarded. For most hosts, this
// holds for https only; see [New]. All other requests are sent once, unchanged. Name only hosts
// whose POST and PATCH routes honor the key: a host that ignores the key would carry out every
// retry. [Options.Methods] and [Options.Skip] change which requests are guarded. If GET is among
// the methods, GET requests get keys and retries too.
//
// # Keys
//
// A request's key comes from the first of these sources that has one:
//
//  1. the request's header
//  2. the request's context, see [WithKey]
//  3. for a redirect, the request that was redirected
//  4. [Options.NewKey], which is [RandomKey] by default
//
// All attempts of a request, and the requests of its redirects, have the same key. It is in
// the header of the response's Request.
//
// After an error, a 5xx, a 408, 425 or 429, or a 409 for a request in progress, the caller does not
// know whether the request was carried out. To repeat it later, the caller needs its key. So choose
// the key before the first attempt and pass it with WithKey. To be able to repeat the request after
// a crash, store the key or derive it from something stored, such as the number of an order. The
// same request with a new random key could be a second payment.
//
// A redirect to a host that was not given to [New] is sent without a key, even if the caller has
// set one. So is a redirect to plain HTTP on a host that was given for https only.
//
// # Retries
//
// A request is sent again in these cases:
//
//	network error, no response       except a rejected certificate, plain HTTP on an https
//	                                 port, or a context that has ended
//	408, 425, 429, 500, 502, 503,    unless the problem document has a final code; see below
//	504
//	409 idempotency_in_progress      any other 409 comes from the application and is final
//	incomplete problem document      because its code is unknown
//
// All other responses are final. These responses are also final:
//
//   - A response with a code that a retry would get again: idempotency_answer_unavailable,
//     idempotency_answer_unreadable, idempotency_attempt_abandoned, idempotency_body_unknown,
//     idempotency_payload_mismatch, idempotency_permanent_failure, idempotency_record_foreign,
//     idempotency_request_invalid, idempotency_streaming_refused, idempotency_write_invalid.
//   - A response with the header X-Idempotency-Replayed: true, whatever its status, because a
//     completed record never changes.
//
// With the other codes of the guard (idempotency_condition_failed, idempotency_not_begun,
// idempotency_out_of_time, idempotency_outcome_unknown, idempotency_retryable_failure,
// idempotency_store_unavailable) and with unknown codes, the status decides. A problem document
// with a Content-Encoding, which a server sends only if the caller has asked for it, is not read.
// The status then decides too, and a 409 is final.
//
// A retry has the header Idempotency-Attempt: 2 for the first retry, 3 for the second. A
// lambdaidem guard with Options.Repeated uses it to make replays cheaper.
//
// A response counts as received when its header has arrived. If reading its body fails, the
// caller gets the error and there is no retry, because the caller may already have used the
// first part. It is then safe to send the same request again, with the key in the header of
// the response's Request: the guard replays the response.
//
// # Waits
//
// The wait before a retry grows exponentially, with jitter, and is never shorter than the
// server's Retry-After. If Retry-After is longer than [Options.MaxRetryAfter], or the wait
// would end after the deadline of the context ([http.Client.Timeout] sets one), there is no
// retry: the caller gets the last response or error at once. The response still has its
// Retry-After header.
//
// A server that accepts a request and never responds uses up all of the time before the
// deadline. Set [http.Transport.ResponseHeaderTimeout] to limit each attempt. The resulting
// error counts as a network error.
//
// # Bodies
//
// A retry gets its body from the request's GetBody, which [http.NewRequest] sets for bytes and
// strings. A body without GetBody is read into memory before the first attempt if it has at
// most [Options.MaxBuffer] bytes. It is then sent with a Content-Length, which a guarded
// handler requires anyway. A longer body is sent once, with a key and without retries.
package idemclient
