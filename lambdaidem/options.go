package lambdaidem

import (
	"context"
	"io"
	"time"
)

// Options configure a guard. The option functions that are passed to [New] receive the
// Options with all defaults filled in. Setting a field to its zero value restores its
// default. New panics if a value is invalid, and names the field.
type Options struct {
	// Namespace separates the records of this function from those of other functions in
	// the same table. Default: the name of the Lambda function. Outside Lambda: the
	// program's package path or, if that is unknown, its file name.
	Namespace string
	// IDPrefix follows "lambdaidem#" in the id of every record. With the prefix "acme", the id of a
	// record is "lambdaidem#acme#" followed by a hash. A store may split a large answer over
	// several items; their ids also begin with "lambdaidem#acme#". Default: "", which means no
	// prefix.
	//
	// With a prefix for each tenant, an IAM policy can limit a role to the records of one tenant.
	// Its condition key is dynamodb:LeadingKeys (Amazon DynamoDB, "Using IAM policy conditions for
	// fine-grained access control"). Make one guard for each tenant, with a store whose client has
	// the tenant's role.
	//
	// A prefix has 1 to 40 characters: ASCII letters, digits and any of "-_.:/=+@". A guard finds
	// only records with its own prefix or, without a prefix, only records without one.
	IDPrefix string

	// KeyHeader is the name of the request header with the idempotency key. Case does not
	// matter. The header is ignored if Key is set. Default: "Idempotency-Key".
	KeyHeader string
	// Key returns the idempotency key of a guarded request. Set it if the key is in the body or the
	// path, or is made from several values by [HashKey]. Package jmeskey makes such a function from
	// a JMESPath expression. Default: nil; the key is then in KeyHeader.
	//
	// Returning "" means that the request has no key. An error made by [Reject] is sent to the
	// client; any other error becomes 400 [ErrKeyInvalid]. ValidateKey checks the key, as it does
	// for a header.
	//
	// The guard calls Key once for each request, after Skip, and only if the request is within
	// MaxURI, MaxBody and MaxHeaders. Key must not change the request.
	Key func(context.Context, *Request) (string, error)
	// KeyOptional lets a request without a key run unguarded. The guard then reports
	// [EventBypassed]. Default: false; a request without a key then gets 400.
	KeyOptional bool
	// ValidateKey returns an error if it does not accept a key. The client receives 400
	// with the error's text. Default: [PrintableKey]. See also [UUIDKey], [UUIDv4or7Key]
	// and [TokenKey].
	ValidateKey func(key string) error

	// Methods are the HTTP methods to guard. Case does not matter. Requests with other
	// methods run unguarded: they need no key and have no record, and the handler runs for
	// every retry. Default: POST, PATCH. [Guard.APIGatewayWebSocket] ignores Methods.
	Methods []string
	// Skip reports whether to run a request unguarded. Default: nil, which skips no request.
	Skip func(*Request) bool
	// Repeated reports whether a request probably repeats an earlier one. It can reduce the cost of
	// repetitions. [SentAgain] is such a function. Default: nil, which counts no request as a
	// repetition.
	//
	// If Repeated returns true, the guard first reads the record, at one read unit for each 4 KB,
	// and replays the answer if the record has one. Without the read, the guard would try to take
	// the lease with a write. For a repetition, that write is refused, but costs one write unit for
	// each KB. A write unit costs five times as much as a read unit. If the record has no answer,
	// the read is an additional cost.
	Repeated func(*Request) bool
	// Principal returns a name for the caller of a request. The same key sent by two callers
	// belongs to two records. An error made by [Reject] is sent to the client; any other error
	// becomes 403 [ErrPrincipalUnknown]. An empty name becomes a 403 too, unless AnonymousCallers
	// is set. Default: nil; the caller is then the one that the gateway has authenticated (see
	// [Request.Principal]).
	Principal func(context.Context, *Request) (string, error)
	// AnonymousCallers lets Principal return "" for callers that it can't tell apart. These
	// callers share their keys. AnonymousCallers also lets [Guard.Middleware] work without
	// Principal. Default: false.
	//
	// If Principal is nil, AnonymousCallers has no effect on the events of a gateway. The gateway
	// tells its callers apart, and those that it has not authenticated share their keys in any
	// case.
	AnonymousCallers bool

	// TTL is how long the answer of a completed record is replayed. A request that arrives later is
	// a new request, and the handler runs again. TTL must therefore be longer than any client keeps
	// retrying, and at least [MinTTL], 15 minutes. The database keeps an expired record for another
	// [KeptAfterExpiry], one hour. Default: 24 hours.
	//
	// TTL should also be longer than the timeout of the function. A timeout exceeds MinTTL only on
	// Lambda Managed Instances, where it can be up to 90 minutes. With a shorter TTL, the
	// guarantees still hold, but an answer may be refused, or expire early:
	//
	//   - The record of a running attempt expires TTL after its claim, but at the earliest soon
	//     after its lease has ended. If the handler returns later than that, its answer and its
	//     enlisted writes are refused, even if no retry has come.
	//   - The TTL of an answer counts from the time when its handler returned. If an outage of the
	//     database delays the storing of the answer, the answer is replayed for less than TTL.
	TTL time.Duration
	// Policy decides what happens after an attempt has died, or has ended and nobody knows
	// whether it had an effect. Under [Rerun], a retry runs the handler again. Under [Hold],
	// the record waits for an operator. Default: Rerun.
	Policy Policy
	// MaxSkew is the largest difference between the clocks of two machines that the
	// guard allows for. Every lease lasts MaxSkew longer than its attempt. If the
	// difference is larger, a machine whose clock is ahead may find that a live lease has
	// expired, and two attempts for one key may run at the same time. Only one of them can
	// complete the record even then, because of their fencing tokens. Default: 2 s.
	MaxSkew time.Duration
	// LeaseDuration is the time that an attempt may take if its context has no deadline.
	// It has no effect in Lambda, whose contexts have a deadline. Default: 60 s.
	LeaseDuration time.Duration
	// Reserve is the time between the end of the handler's context and the deadline of
	// the invocation. The guard uses it to store the answer. If Reserve exceeds nine
	// tenths of the time that an invocation starts with, half of that time is reserved
	// instead. Default: 500 ms or a tenth of the time left, whichever is less.
	Reserve time.Duration
	// CleanupTimeout is the maximum time for each of these tasks:
	//
	//   - to release a record
	//   - to store an answer if the handler has returned so late that Reserve is used up, or after
	//     a run with FailOpen
	//   - to commit the writes that a handler enlisted in a request without a record; see
	//     KeyOptional
	//
	// Inside another guarded handler, each task may use at most half of the time that the outer
	// call has left, so that the outer handler's answer can still be stored. Default: 2 s.
	CleanupTimeout time.Duration

	// Wait is how long a duplicate request waits for the attempt in progress before it gets 409.
	// The wait always ends early enough to answer before the deadline of the invocation. Default:
	// 0; a duplicate then gets 409 at once.
	//
	// The duplicate reads the record after random pauses. The first pause is 20 to 40 ms long, and
	// later ones grow up to 1 s. A wait of 200 ms needs at most 5 reads.
	Wait time.Duration
	// MinRunTime prevents a handler from starting so late that it can't finish. It applies to a
	// request that has waited for another attempt (see Wait), and to each message of a batch. The
	// handler starts only if at least MinRunTime plus Reserve is left of the invocation. Otherwise
	// the request gets 409, or the message fails and is delivered again. Default: 1 s.
	//
	// A function with a short timeout may never have that much time left. If MinRunTime plus
	// Reserve exceeds nine tenths of the time left at the start of a batch, MinRunTime does not
	// apply to the batch. Its messages may then start until half of the time left has passed. The
	// guard logs one warning about this case if you have raised MinRunTime or set Reserve.
	MinRunTime time.Duration
	// RetryAfter is the value of the Retry-After header in a 409 [ErrInProgress] and in a
	// 503, in whole seconds, rounded up. In a 503 [ErrOutcomeUnknown], the value is the time
	// until the lease ends, if that is longer. Default: 1 s.
	RetryAfter time.Duration

	// Outcome decides whether a response is stored, and whether a retry runs the handler again. It
	// receives a copy of the response, and may pass the copy to [DefaultOutcome] to get the default
	// under this guard's Policy. A return value that is not one of the Outcome constants means
	// [OutcomeUncertain]. Default: nil; the outcome is then that of DefaultOutcome.
	//
	// If the handler has enlisted writes, and its response has a status of 200 to 399, the outcome
	// must be [OutcomeSucceeded]. Any other outcome drops the writes, and the client gets 500
	// [ErrWriteInvalid].
	//
	// A guarded call that the handler makes, an inner call, may change the outcome that this
	// function returns; see docs/effects.md, "Guarded calls inside a handler". There are two rules.
	// They don't apply to a response with a status of 200 to 399 for which this function returns
	// [OutcomeSucceeded] or [OutcomeFailed].
	//
	//   - If an inner call was refused and may succeed later, the response is not stored. Under
	//     policy [Rerun], a retry can then run the handler and the inner call again.
	//   - If it is unknown whether an inner call had its effect, the response is not stored, and no
	//     retry runs the handler before the lease has ended.
	//
	// If one of these rules changes the outcome, the client gets 503 [ErrOutcomeUnknown] instead of
	// the response. A final failure, such as a 402, is replaced even if this function has already
	// returned the outcome that the rule demands, because the client would not retry after the 402.
	Outcome func(*Response) Outcome
	// FailOpen runs the handler without a lease if a request to the store fails. A retry may then
	// run the handler again. The event [EventFailedOpen] reports each such run. Default: false; the
	// handler then does not run, and the client gets 503.
	//
	// Even with FailOpen, the handler does not run in these cases, and the client gets 503:
	//
	//   - The guard knows that the record has stored steps of an earlier attempt, which the handler
	//     might repeat.
	//   - An earlier request to the store has found the record of an attempt that died, and the
	//     failed request may have taken over this record. The dead attempt may have stored steps,
	//     too.
	//   - The guard has read the record first (see Repeated), and the record does not permit this
	//     call to run, for example because another attempt is running.
	//   - A transaction of another attempt was writing the record.
	//
	// If no request to the store succeeds, the guard can't know of stored steps. The handler then
	// runs, and [Step] runs these steps again, with the same [DownstreamKey].
	//
	// FailOpen does not apply to a guarded call inside a guarded handler. Such a call gets
	// [ErrStoreUnavailable]: without a record, a retry of the handler could not find out what the
	// call has done.
	//
	// After the run, the guard tries to store the answer or, if its outcome is [OutcomeReleased],
	// to release the record. If the record has the answer of another attempt, the client gets that
	// answer. It may be a failure, although this run had an effect. Otherwise the client gets the
	// answer of this run, even if the store fails again, except in these cases:
	//
	//   - The handler enlisted writes, and they can't be committed.
	//   - The answer is a final failure, and the guard can neither store it nor release the record.
	//     Another attempt may carry out the request, and the client would not learn of it. A
	//     failure is final unless package idemclient retries a request that gets it. That package
	//     retries 408, 425, 429, 500, 502, 503, 504 and a 409 [ErrInProgress]. A 200 is a final
	//     failure if Options.Outcome does not return [OutcomeSucceeded] for it.
	//   - The answer is any failure, and the record is of a request with another payload. A retry
	//     would be refused, too.
	//
	// The client then gets one of these errors:
	//
	//   - 409 [ErrInProgress] if another attempt is running, or began after this one and stored no
	//     answer.
	//   - [ErrPayloadMismatch] if the record is of a request with another payload. The error's
	//     detail tells the client not to use a new key: the handler may have called other services.
	//   - 503 [ErrOutcomeUnknown] in all other cases, such as when the store does not reply.
	//
	// A handler without a lease has at most 30 minutes from the beginning of its attempt, less
	// Reserve. Its context ends then. Enlisted writes or a final failure that it returns later are
	// not stored, and the client gets 503 [ErrOutcomeUnknown]. By then, another attempt may have
	// completed the record, and the record may have expired and been deleted; see
	// [KeptAfterExpiry]. Nothing would prevent a second write.
	//
	// Under policy [Hold], a record may wait for an operator although the handler has run and the
	// client has its answer. This happens if the database grants the lease, but its reply is lost,
	// and the guard can't store the answer later.
	FailOpen bool
	// Optimistic runs the handler without taking a lease first. After the run, one transaction
	// stores the enlisted writes, the answer and the record. A new request therefore takes one
	// round trip to the database instead of two. Default: false.
	//
	// Set Optimistic only if enlisted writes are the handler's only effects. A duplicate runs the
	// handler too, unless the answer is in Options.Cache. After such a run, the database refuses
	// the duplicate's transaction, but any other effect of the run would happen twice.
	//
	// The handler has at most 30 minutes from the beginning of its attempt, less Reserve. Its
	// context ends then. If the handler returns after more than 30 minutes, nothing is written. By
	// then, another attempt may have completed the record, and the record may have expired and been
	// deleted; see [KeptAfterExpiry]. Nothing would prevent a second write. The client gets the
	// answer of another attempt, or 503 [ErrOutOfTime] if there is none.
	//
	// The handler has attempt number 0 and can't use steps. Optimistic requires a store with
	// transactions, policy [Rerun], and FailOpen unset.
	Optimistic bool
	// FingerprintIgnore are JSON Pointers (RFC 6901) to parts of a payload that may differ in a
	// retry, such as a timestamp or a trace id. The pointers apply to the JSON bodies of HTTP
	// requests and messages, and to the payloads of [Do] and [Handler]. Default: none.
	//
	// The handler may use an ignored part only for things that may differ between retries. If an
	// amount is ignored, a request with another amount counts as a retry.
	//
	//   - A pointer to a part that does not exist has no effect.
	//   - An array index counts all elements of the array, including ignored elements.
	//   - Case matters in the names of members.
	//   - The pointers don't apply to a body that is not JSON, or that JSON readers may understand
	//     differently, such as an object with a repeated member. The fingerprint covers every byte
	//     of such a body.
	//   - If you add a pointer, a retry of an earlier request that contains the part gets 422,
	//     until the earlier request's record expires.
	FingerprintIgnore []string
	// FingerprintHeaders are the names of HTTP request headers that the fingerprint
	// covers, besides method, path, query and body: the header with a tenant or a
	// currency, for example. Case does not matter in the names. An absent header differs
	// from an empty one, and the order of several values matters. If you change the list,
	// retries of earlier requests get 422, until the records of the earlier requests expire.
	// Default: none.
	FingerprintHeaders []string
	// FingerprintSecrets are secret keys for fingerprints, each of at least 16 random bytes. With a
	// secret, a fingerprint is an HMAC-SHA256 (RFC 2104) instead of a SHA-256. Someone who can read
	// the table then can't confirm a guess of a payload, such as an amount. Default: none.
	//
	// The guard makes new fingerprints with the first entry, and can compare a payload with
	// fingerprints made with any of the entries. The entry [Unsigned] stands for fingerprints
	// without a secret.
	//
	// To replace a secret, deploy these lists one after the other: {old, new}, {new, old} and
	// {new}. Deploy each of them everywhere before the next. After {new, old}, also wait for the
	// sum of the TTL, the function's timeout and 15 minutes, and until no record from before {new,
	// old} waits for an operator; see [Hold]. To introduce the first secret, use Unsigned() as the
	// old one. See docs/operate.md, "Something changes in a deployment".
	FingerprintSecrets [][]byte
	// MismatchStatus is the HTTP status of [ErrPayloadMismatch]: 422 or 409.
	// Default: 422.
	MismatchStatus int

	// Cache configures a cache of completed records in the memory of the process. A replay
	// from the cache needs no request to the store. The process may replay a record for up
	// to Cache.MaxAge after an operator has purged it. Default: nothing is cached.
	Cache CacheOptions

	// ReplayMarks are headers to add to every replayed response. An empty, non-nil slice
	// adds none. Default: X-Idempotency-Replayed: true.
	ReplayMarks []Mark
	// OnReplay may change a replayed response before it is sent. Default: nil.
	OnReplay func(context.Context, *Request, *Response)
	// OnOwnAnswer may change the guard's response to a request that it refuses, for example to add
	// CORS or tracing headers to a 400, 409, 422 or 503. Default: nil.
	//
	// The guard does not call OnOwnAnswer for an error that the handler returned, such as one made
	// by [Reject] or marked by [Retryable]. The response is then the handler's answer, and may be
	// stored. To add headers to that response, let the handler return a response instead of an
	// error, or use the gateway.
	OnOwnAnswer func(context.Context, *Request, *Response, *Error)
	// UnstoredHeaders are the names of response headers that are sent to the first caller
	// only: they are not stored and not replayed. Case does not matter. "Set-Cookie" also
	// applies to Response.Cookies. Default: none.
	UnstoredHeaders []string

	// Observer receives an event for each outcome. Default: events that are worth a
	// warning are logged on slog.Default(), as [SlogObserver] does. Set [Discard] to
	// ignore all events.
	Observer Observer
	// ScopePath shortens a path in the record's readable scope and in events. It can remove a
	// secret, such as the token in the path /reset/TOKEN. The guard uses it only for requests
	// without a route template. ScopePath does not affect which record a request belongs to.
	// Default: nil, which shows the whole path.
	ScopePath func(path string) string
	// ShowKeys puts complete idempotency keys into events. Default: false; events then have a short
	// hash of the key.
	ShowKeys bool

	// MaxURI is the maximum total length of the host, path, route and query of a request,
	// in bytes. A longer request gets 414. Default: 16 KiB.
	MaxURI int
	// MaxBody is the maximum length of the body of a guarded request, in bytes. A longer body gets
	// 413. Default: 6 MiB, so the default refuses no body that Lambda accepts.
	MaxBody int
	// MaxHeaders is the maximum number of request headers. In a net/http request, each
	// value of a header counts. A request with more gets 431. Default: 500.
	MaxHeaders int
	// MaxJSONDepth is the maximum nesting depth of the JSON bodies that the guard compares by
	// value: white space and the order of members don't matter in these bodies. A body with deeper
	// nesting is compared byte by byte. Default: 64.
	MaxJSONDepth int

	// MaxStepBytes is the maximum total size of the names and results of a record's steps,
	// in bytes. If a result would exceed it, [Step] returns [ErrOutcomeUnknown]. Default: 16 KiB. A
	// store may have a lower limit: dynamostore stores at most about 392 KB, including the overhead
	// of encryption.
	//
	// Storing a step writes all steps of the record again. DynamoDB also charges for the size of
	// the record when it refuses a duplicate's claim. So while a record has steps, every duplicate
	// costs one more write unit for each KB of the steps.
	MaxStepBytes int

	// Clock returns the current time. Set it in tests only. Default: time.Now.
	Clock func() time.Time
	// Random is the source of random bytes for fencing tokens and jitter. It must be safe
	// for concurrent use. Set it in tests only. Default: crypto/rand.Reader.
	Random io.Reader
}

// MinTTL is the minimum Options.TTL: 15 minutes. AWS accepts a request for up to 15 minutes
// after it was signed (Signature Version 4; error RequestExpired). So the database may carry
// out a delayed write of an old attempt up to 15 minutes after the attempt has sent it. During
// this time the record must exist, because the record makes the condition of the write fail.
const MinTTL = 15 * time.Minute

// Mark is a header to add to replayed responses; see Options.ReplayMarks.
type Mark struct{ Name, Value string }
