package lambdaidem

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

// Options configure a guard. An option function receives the Options with their
// defaults filled in. A field that the function sets to its zero value has its default
// again. [New] panics if a value is invalid, and names the field.
type Options struct {
	// Namespace separates the records of this function from those of other functions
	// in the same table. Default: the Lambda function's name; outside Lambda the
	// program's package path, else its file name.
	Namespace string

	// KeyHeader is the name of the header with the idempotency key. Case does not
	// matter. The header is not read if Key is set. Default: "Idempotency-Key".
	KeyHeader string
	// Key returns the key of a guarded request, for keys that are not in a header:
	// the key may be in the body or the path, or be the [HashKey] of the values that
	// identify the operation. Package jmeskey makes such a function of a JMESPath
	// expression. The guard calls Key once for each request, after Skip, and only if
	// the request is within MaxURI, MaxBody and MaxHeaders. Key must not change the
	// request. Returning "" means that the request has no key. An error made by
	// [Reject] is sent to the client; any other error becomes 400 [ErrKeyInvalid]. As
	// with a header, ValidateKey checks the key, and equal keys of different callers
	// are different. Default: nil, the key is in KeyHeader.
	Key func(context.Context, *Request) (string, error)
	// KeyOptional lets a request without a key run unguarded, which is reported as
	// [EventBypassed]. Default: false, such a request gets 400.
	KeyOptional bool
	// ValidateKey returns an error if a key is not acceptable. The client receives
	// the error's text. Default: [PrintableKey]. See also [UUIDKey], [UUIDv4or7Key]
	// and [TokenKey].
	ValidateKey func(key string) error

	// Methods are the HTTP methods to guard. Case does not matter. Requests with
	// other methods run unguarded. Default: POST, PATCH.
	Methods []string
	// Skip reports whether to run a request unguarded. Default: none is skipped.
	Skip func(*Request) bool
	// Principal returns the caller of a request. Equal keys of two callers are
	// different keys. Default: the caller whom the gateway has authenticated, see
	// [Request.Principal]. An error made by [Reject] is sent to the client; any other
	// error becomes 403 [ErrPrincipalUnknown]. So does an empty principal, unless
	// AnonymousCallers is set.
	Principal func(context.Context, *Request) (string, error)
	// AnonymousCallers allows callers who can't be told apart, and who therefore
	// share their keys. Default: false; [Guard.Middleware] then requires Principal,
	// and Principal must not return "". Events of a gateway that authenticates nobody
	// are accepted without it.
	AnonymousCallers bool

	// TTL is the time for which a completed record replays, in whole seconds. A
	// request that arrives later is a new request and has its effects again, so the
	// TTL must exceed the time within which clients retry. It must be at least
	// [MinTTL], 15 minutes. Default: 24 hours. The database keeps the record for
	// [KeptAfterExpiry] longer.
	TTL time.Duration
	// Policy decides what happens to a record after an attempt died whose effects are
	// unknown. Default: [Rerun].
	Policy Policy
	// MaxSkew is the largest difference between the clocks of two machines that the
	// guard allows for. Every lease lasts MaxSkew longer than its attempt. Default:
	// 2 s. If the difference is larger, a machine whose clock is ahead may take a
	// live lease for expired, and two attempts for one key may run at the same time.
	// Fencing still lets only one of them complete, and a completed record never
	// changes.
	MaxSkew time.Duration
	// LeaseDuration is the time that an attempt may take if its context has no
	// deadline. Default: 60 s. The contexts of Lambda have a deadline.
	LeaseDuration time.Duration
	// Reserve is the time between the end of the handler's context and the deadline
	// of the invocation, which the guard needs to store the answer. Default: 500 ms or
	// a tenth of the time left, the smaller. If an invocation starts with hardly more
	// time than Reserve (Reserve exceeds nine tenths of it), half of the time is
	// reserved.
	Reserve time.Duration
	// CleanupTimeout is the maximum time for releasing a record, for storing an
	// answer after the request's context has ended, and for the transaction of a
	// request that runs unguarded. Inside the handler of another call, it is at most
	// half of the time that the other call has left to store its answer. Default: 2 s.
	CleanupTimeout time.Duration

	// Wait is how long a duplicate request waits for the attempt in progress before
	// it gets 409. Default: 0, it doesn't wait. The wait always ends in time to
	// answer before the deadline of the invocation.
	Wait time.Duration
	// MinRunTime is the time that must be left of the invocation, in addition to
	// Reserve if that is set, for a request that has waited to begin its own attempt,
	// and for a message of a batch to begin. If an invocation starts with hardly more
	// time (their sum exceeds nine tenths of it), the messages of a batch begin as long
	// as half of the time is left, and one warning says so if MinRunTime is above the
	// default or Reserve is set. Default: 1 s.
	MinRunTime time.Duration
	// RetryAfter is the minimum value of the Retry-After header in a 409
	// [ErrInProgress] and in a 503. It is sent in whole seconds, rounded up. Default:
	// 1 s.
	RetryAfter time.Duration

	// Outcome decides whether a response is stored, and whether a retry runs again.
	// Default: [DefaultOutcome]. A function of yours may call DefaultOutcome with the
	// response that it received, to have the default under this guard's Policy. A
	// return value that is not one of the Outcome constants means
	// [OutcomeUncertain]. The function receives a copy of the response: changing it
	// has no effect. If the handler made a guarded call that may succeed later, a
	// response with another status than 200 to 399 is not stored, whatever the
	// function returns; if the outcome of such a call is unknown, it is not released
	// either, and the client gets 503 [ErrOutcomeUnknown]. See docs/effects.md, "Guarded
	// calls inside a handler". If an outcome drops the enlisted writes of a response with a
	// status of 200 to 399, the client gets 500 [ErrWriteInvalid] instead.
	Outcome func(*Response) Outcome
	// FailOpen runs the handler unguarded when the store can't be reached.
	// It does not run after a failed takeover of an attempt that died, whose steps it might
	// repeat. With Policy Hold, a handler that ran unguarded and was answered may leave
	// its record held: the claim was applied, its reply was lost, and the answer could not
	// be stored. Default: false, the client gets 503 and the handler does not run.
	FailOpen bool
	// Optimistic runs the handler without taking a lease first, and commits the
	// enlisted writes, the answer and the record in one transaction. A new request
	// then takes one round trip instead of two. Set it only if enlisted writes are the
	// handler's only effects: duplicates run the handler too, both before and after
	// the commit, and only their enlisted writes are dropped. (A duplicate whose
	// answer is in Options.Cache does not run the handler.) An optimistic handler has
	// attempt number 0 and can't use steps. Optimistic requires a store with
	// transactions, Policy Rerun, and FailOpen unset. Default: false.
	Optimistic bool
	// FingerprintIgnore are JSON Pointers (RFC 6901) to parts of a payload that may
	// differ between a request and its retry, such as a timestamp or a trace id. The
	// fingerprint does not cover these parts of JSON bodies over HTTP and of the
	// payloads of [Do] and [Handler]. An ignored part may also be absent. An index
	// refers to the whole array, before any element is left out. A pointer to a part
	// that does not exist has no effect. Case matters. The pointers don't apply to a
	// body that is not JSON, or that JSON readers may understand differently: the
	// fingerprint covers every byte of such a body. Nothing that must be the same on
	// every retry may depend on an ignored part. After a pointer is added, retries of
	// older requests that contain the part get 422 until Options.TTL has passed.
	// Default: none.
	FingerprintIgnore []string
	// FingerprintHeaders are the names of HTTP request headers that the fingerprint
	// covers, besides path, query and body: the header with a tenant or a currency,
	// for example. Case does not matter in the names. An absent header differs from
	// an empty one, and the order of several values matters. After a change, retries
	// of older requests get 422 until Options.TTL has passed. Default: none.
	FingerprintHeaders []string
	// FingerprintSecrets are the keys of the fingerprints' HMAC-SHA256 (RFC 2104),
	// which replaces SHA-256. With a secret, someone who can read the table can't
	// confirm a guess of a payload, such as an amount. Each secret must have at least
	// 16 random bytes. The first secret signs new fingerprints; a fingerprint signed
	// with any of them matches. The entry [Unsigned] means fingerprints without a
	// secret. Default: none, fingerprints are unsigned.
	//
	// To replace the first entry, first append the new one and deploy everywhere.
	// Then move the new entry to the front and deploy everywhere. Remove the old
	// entry when Options.TTL and the longest attempt have passed since. To introduce
	// the first secret, do the same with [Unsigned] as the old entry. See
	// docs/operate.md.
	FingerprintSecrets [][]byte
	// MismatchStatus is the HTTP status of [ErrPayloadMismatch]: 422 or 409.
	// Default: 422.
	MismatchStatus int

	// Cache configures a cache of finished records in the process, which lets a
	// replay do without a request to the store. A process may replay a purged record
	// for up to Cache.MaxAge. Default: nothing is kept.
	Cache CacheOptions

	// ReplayMarks are headers to add to every replay. Default:
	// X-Idempotency-Replayed: true. An empty, non-nil slice adds none.
	ReplayMarks []Mark
	// OnReplay may change a replay before it is sent. Default: nil.
	OnReplay func(context.Context, *Request, *Response)
	// OnOwnAnswer may change a response that the guard itself makes (400, 409, 422,
	// 503 …) before it is sent, for example to add CORS or tracing headers.
	// Default: nil.
	OnOwnAnswer func(context.Context, *Request, *Response, *Error)
	// UnstoredHeaders are the names of response headers that are not stored, so that
	// replays don't have them. Case does not matter. "Set-Cookie" also applies to
	// Response.Cookies. Default: none.
	UnstoredHeaders []string

	// Observer receives an event for each outcome. Default: [SlogObserver] on
	// slog.Default() for warnings only. To have none, set [Discard].
	Observer Observer
	// ScopePath shortens the path of a request without a route template. The result
	// appears in the record's readable scope and in events, where a path such as
	// /reset/TOKEN would reveal a secret. ScopePath does not affect which record a
	// request belongs to. Default: the whole path.
	ScopePath func(path string) string
	// ShowKeys puts complete idempotency keys into events. Default: false, events
	// have a short hash.
	ShowKeys bool

	// MaxURI is the maximum length of a request's host, path, route and query
	// together, in bytes. A longer request gets 414. Default: 16 KiB.
	MaxURI int
	// MaxBody is the maximum length of a guarded request's body, in bytes. A longer
	// body gets 413. Default: 6 MiB, which is more than Lambda accepts.
	MaxBody int
	// MaxHeaders is the maximum number of request headers. A request with more gets
	// 431. Default: 500.
	MaxHeaders int
	// MaxJSONDepth is the maximum nesting of a JSON body that is fingerprinted by
	// value, regardless of white space and the order of members. The fingerprint of a
	// deeper body covers its bytes. Default: 64.
	MaxJSONDepth int

	// MaxStepBytes is the maximum size of all steps of a record together, names and
	// results, in bytes. Each step writes all of them again. While a record has
	// steps, every refused duplicate costs a write unit for each KB of them.
	// Default: 16 KiB. A store may have a lower limit: in dynamostore the whole
	// record is limited to 400 KB.
	MaxStepBytes int

	// Clock returns the current time. Default: time.Now. For tests.
	Clock func() time.Time
	// Random is the source of tokens and jitter. It must be safe for concurrent use.
	// Default: crypto/rand.Reader. For tests.
	Random io.Reader
}

// defaultMinRunTime is the default of Options.MinRunTime.
const defaultMinRunTime = time.Second

// MinTTL is the minimum Options.TTL, 15 minutes. AWS accepts a request for up to 15
// minutes after it was signed (Signature Version 4; error RequestExpired), so a
// delayed write can reach the database that late, and must still find the record.
const MinTTL = 15 * time.Minute

// Mark is a header to add to replays.
type Mark struct{ Name, Value string }

// settle returns the options with their defaults filled in.
func (o Options) settle() Options {
	defaultTo(&o.Namespace, defaultNamespace())
	defaultTo(&o.KeyHeader, "Idempotency-Key")
	if o.ValidateKey == nil {
		o.ValidateKey = PrintableKey
	}
	if o.Methods == nil {
		o.Methods = []string{http.MethodPost, http.MethodPatch}
	}
	upper := make([]string, len(o.Methods))
	for i, m := range o.Methods {
		upper[i] = strings.ToUpper(m)
	}
	o.Methods = upper
	o.FingerprintIgnore, o.FingerprintHeaders = slices.Clone(o.FingerprintIgnore), slices.Clone(o.FingerprintHeaders)
	o.FingerprintSecrets = slices.Clone(o.FingerprintSecrets)
	for i, secret := range o.FingerprintSecrets {
		o.FingerprintSecrets[i] = bytes.Clone(secret)
	}
	defaultTo(&o.TTL, 24*time.Hour)
	defaultTo(&o.Policy, Rerun)
	defaultTo(&o.MaxSkew, 2*time.Second)
	defaultTo(&o.LeaseDuration, time.Minute)
	defaultTo(&o.CleanupTimeout, 2*time.Second)
	defaultTo(&o.MinRunTime, defaultMinRunTime)
	defaultTo(&o.RetryAfter, time.Second)
	defaultTo(&o.MismatchStatus, http.StatusUnprocessableEntity)
	o.Cache = o.Cache.settle()
	if o.ReplayMarks == nil {
		o.ReplayMarks = []Mark{{"X-Idempotency-Replayed", "true"}}
	}
	if o.Observer == nil {
		o.Observer = warnings{}
	}
	defaultTo(&o.MaxURI, 16<<10)
	defaultTo(&o.MaxBody, 6<<20)
	o.MaxBody = min(o.MaxBody, math.MaxInt-1) // the middleware reads up to MaxBody+1 bytes
	defaultTo(&o.MaxHeaders, 500)
	defaultTo(&o.MaxJSONDepth, 64)
	defaultTo(&o.MaxStepBytes, 16<<10)
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	return o
}

// check panics if an option is invalid, and names the field.
func (o Options) check() {
	check := func(ok bool, field, want string, got any) {
		if !ok {
			panic(fmt.Sprintf("lambdaidem: Options.%s is %v; it must be %s", field, got, want))
		}
	}
	check(validHeaderName(o.KeyHeader), "KeyHeader", "a header name", o.KeyHeader)
	check(len(o.Methods) > 0 && !slices.Contains(o.Methods, ""), "Methods", "HTTP methods, none empty", o.Methods)
	check(o.TTL >= MinTTL, "TTL", "at least 15 minutes (MinTTL): a signed request may arrive as late, and must find its record", o.TTL)
	check(o.Policy == Rerun || o.Policy == Hold, "Policy", "Rerun or Hold", o.Policy)
	check(!o.Optimistic || o.Policy != Hold, "Policy", "Rerun where Optimistic is set: without a lease there is nothing to hold", o.Policy)
	check(!o.Optimistic || !o.FailOpen, "FailOpen", "false where Optimistic is set: nothing but the store's transaction has an effect", o.FailOpen)
	check(o.MaxSkew > 0, "MaxSkew", "positive", o.MaxSkew)
	check(o.LeaseDuration > 0, "LeaseDuration", "positive", o.LeaseDuration)
	check(o.Reserve >= 0, "Reserve", "positive, or 0 for the default", o.Reserve)
	check(o.CleanupTimeout > 0, "CleanupTimeout", "positive", o.CleanupTimeout)
	check(o.Wait >= 0, "Wait", "positive, or 0 not to wait", o.Wait)
	check(o.MinRunTime > 0, "MinRunTime", "positive", o.MinRunTime)
	check(o.RetryAfter > 0, "RetryAfter", "positive", o.RetryAfter)
	check(o.MismatchStatus == http.StatusUnprocessableEntity || o.MismatchStatus == http.StatusConflict,
		"MismatchStatus", "422 or 409", o.MismatchStatus)
	check(o.Cache.Entries >= 0, "Cache.Entries", "positive, or 0 for the default", o.Cache.Entries)
	check(o.Cache.Bytes >= 0, "Cache.Bytes", "positive, or 0 for the default", o.Cache.Bytes)
	check(o.Cache.MaxAge >= 0, "Cache.MaxAge", "positive, or 0 for the default", o.Cache.MaxAge)
	for _, m := range o.ReplayMarks {
		check(validHeaderName(m.Name) && validHeaderValue(m.Value), "ReplayMarks", "headers", m)
	}
	check(o.MaxURI > 0, "MaxURI", "positive", o.MaxURI)
	check(o.MaxBody > 0, "MaxBody", "positive", o.MaxBody)
	check(o.MaxHeaders > 0, "MaxHeaders", "positive", o.MaxHeaders)
	check(o.MaxJSONDepth > 0, "MaxJSONDepth", "positive", o.MaxJSONDepth)
	check(o.MaxStepBytes > 0, "MaxStepBytes", "positive", o.MaxStepBytes)
}

func defaultTo[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// defaultNamespace returns the name of the Lambda function. Outside Lambda it returns
// the package path of the program, or, if that is unknown or says nothing, the name of
// the executable. The name must stay the same when the program is restarted or rebuilt.
func defaultNamespace() string {
	if lambdacontext.FunctionName != "" {
		return lambdacontext.FunctionName
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Path != "" && info.Path != "command-line-arguments" {
		return info.Path
	}
	return filepath.Base(os.Args[0])
}

func validHeaderName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		letterOrDigit := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letterOrDigit && !strings.ContainsRune("!#$%&'*+-.^_`|~", r) // RFC 9110, 5.6.2
	})
}

func validHeaderValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}
