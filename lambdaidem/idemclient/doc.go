// Package idemclient is the client's half of an idempotent API: a
// [http.RoundTripper] that gives each guarded request a key, sends it again with
// that key until it has an answer that stands, and hands that answer on.
//
//	client := &http.Client{
//		Transport: idemclient.New(nil, []string{"api.example.com"}),
//		Timeout:   30 * time.Second,
//	}
//
// It imports nothing of AWS and nothing of Lambda, and works with every server
// that takes an Idempotency-Key; of the answers of a lambdaidem guard it knows in
// addition which of them stand and which pass.
//
// # What is guarded
//
// POST and PATCH requests to the hosts that [New] was given, by https. Everything
// else passes untouched: no key, no retry. Give only hosts whose POSTs and PATCHes
// do honour the key: one that ignores it would carry out each retry anew.
// [Options.Methods] and [Options.Skip] narrow and widen this; with GET among the
// methods GETs are retried too, and have a key.
//
// # Which key
//
// The first of these: the one that the request's header has already; that of
// [WithKey] in its context; on a redirect, that of the request that was
// redirected; that of [Options.NewKey], [RandomKey] by default. All attempts at a
// request, and what redirects make of it, have the same key. The key that was sent
// stands in the answer's Request.Header.
//
// After an error, a 5xx or a 409 in progress nobody knows whether the request was
// carried out. Who wants to ask again then needs its key, and so gives it by WithKey
// from the start; who wants to ask again after a crash of the process keeps it in a
// place that outlives it, or makes it of the order's number. Another request under a
// new random key is a second payment.
//
// A redirect from a given host to another one, or from https down to http, takes no
// key along, whatever the method, not even one that the caller has set.
//
// # What is sent again
//
//	no answer: network errors        but for a refused certificate, plain HTTP from an
//	                                 https port, and the end of the context
//	408, 425, 429, 500, 502, 503,    unless the problem document's code is final:
//	504                              see below
//	409 idempotency_in_progress      every other 409 is the application's, and stands
//	a problem document that is cut   the part that decides was not read
//
// Everything else stands: a 422, and a 500 or 409 with one of these codes, which
// no retry changes: idempotency_answer_unavailable, idempotency_answer_unreadable,
// idempotency_attempt_abandoned, idempotency_body_unknown,
// idempotency_payload_mismatch, idempotency_permanent_failure,
// idempotency_record_foreign, idempotency_request_invalid,
// idempotency_streaming_refused, idempotency_write_invalid. So does each answer
// that is marked X-Idempotency-Replayed: true, whatever its status, since a
// completed record never changes. Of the guard's other codes with such a
// status, idempotency_condition_failed, idempotency_not_begun, idempotency_out_of_time,
// idempotency_outcome_unknown, idempotency_retryable_failure and
// idempotency_store_unavailable, and of codes unknown here, the status decides. A
// problem document with a Content-Encoding, which only a caller gets that asked
// for one by itself, is not read: there the status decides alone, and a 409 stands.
//
// An answer is the answer once its header has come. If its body is cut off, the
// caller gets the error from reading it, since the first part of it may be used
// already. To send the same request again, with the key that
// answer.Request.Header has, is safe then: the guard replays the answer.
//
// # When
//
// After an exponential backoff with jitter, which follows the server's
// Retry-After where it sent one: never earlier than it says, and not all clients
// at once. A Retry-After beyond [Options.MaxRetryAfter] is not waited for, and no
// wait begins that would end after the context's deadline, of which
// [http.Client.Timeout] makes one: the answer, or the error, of the last attempt
// is handed on at once instead. Retry-After then still stands in it.
//
// A server that takes a request and says nothing uses up all of that time with
// one attempt. [http.Transport.ResponseHeaderTimeout] bounds the attempt: its
// error is one more network error.
//
// # Bodies
//
// A body is sent again by the request's GetBody, which [http.NewRequest] sets for
// bytes and strings. One without is read into memory before the first attempt, up
// to [Options.MaxBuffer] bytes, and then has a Content-Length, which the guard
// wants anyway. A longer one is sent once: with its key, without retries.
package idemclient
