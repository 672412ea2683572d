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

// Options are the guard's settings. An option function gets them with the
// defaults filled in; a field that it sets to its zero value has its documented
// default again. [New] panics on an invalid value and names the
// field.
type Options struct {
	// Namespace sets this function's records apart from those of others in the
	// same table (F1). Default: the Lambda function's name; outside Lambda the
	// program's package path, else its file name.
	Namespace string

	// KeyHeader is the header that carries the idempotency key, matched without
	// case (K1). It is not read where Key is set. Default: "Idempotency-Key".
	KeyHeader string
	// Key finds the key of a guarded request instead of a header (K5): in the body,
	// in the path, or as the [HashKey] of what makes the operation one; the jmeskey
	// package has it by an expression. It sees the whole request, and is called once
	// for each, after Skip and only within the bounds below (S2); it must not change
	// the request. An empty key is a missing one. An error made by [Reject] becomes
	// the answer; any other is a 400 [ErrKeyInvalid]. The key is held to ValidateKey,
	// and each caller's keys are their own, as with the header. Default: nil, the key
	// is in KeyHeader.
	Key func(context.Context, *Request) (string, error)
	// KeyOptional lets a guarded request without a key run unguarded, counted
	// as bypassed. Default: false, such a request gets 400 (K3).
	KeyOptional bool
	// ValidateKey refuses a key by returning an error, whose text the client
	// gets to read (K2). Default: [PrintableKey]. See also [UUIDKey],
	// [UUIDv4or7Key] and [TokenKey].
	ValidateKey func(key string) error

	// Methods are the HTTP methods that are guarded, in any case (K4). Default:
	// POST, PATCH.
	Methods []string
	// Skip lets a request pass unguarded (K4). Default: none is skipped.
	Skip func(*Request) bool
	// Principal tells whose key it is (F2). Default: what the gateway vouches
	// for, see [Request.Principal]. An error made by [Reject] becomes the
	// answer; any other is a 403 [ErrPrincipalUnknown], and so is an empty
	// principal without AnonymousCallers.
	Principal func(context.Context, *Request) (string, error)
	// AnonymousCallers says that callers whom nothing tells apart may share
	// their keys. Default: false; [Guard.Middleware] then wants Principal, and
	// Principal must not return "". Events of a gateway that vouches for nobody
	// don't need it.
	AnonymousCallers bool

	// TTL is how long a completed record replays, in whole seconds. A request that
	// arrives later is a new one and has its effects again, so the TTL must be
	// longer than the last retry takes. At least [MinTTL], 15 minutes. Default: 24
	// hours. The database keeps the record for [KeptAfterExpiry] longer.
	TTL time.Duration
	// Policy decides about attempts that died after unknown effects (L6).
	// Default: [Rerun].
	Policy Policy
	// MaxSkew is the most that two machines' clocks may differ (L5). Default:
	// 2 s. Every lease is longer by it. Beyond it a machine whose clock is ahead
	// may find a lease over that is not, and two attempts at one key may run at
	// a time; fencing still lets one of them complete, and no record changes
	// once it is completed (G3).
	MaxSkew time.Duration
	// LeaseDuration is how long an attempt may run when its context has no
	// deadline (L5). Default: 60 s. Lambda's contexts have one.
	LeaseDuration time.Duration
	// Reserve is how long before the deadline the handler's context ends, so
	// that the completion can still be written (L5). Default: 500 ms or a tenth
	// of the time left, the smaller.
	Reserve time.Duration
	// CleanupTimeout is how long a release may take, a completion when the request's
	// own time is over (X3), and the transaction of a request that runs unguarded.
	// Default: 2 s.
	CleanupTimeout time.Duration

	// Wait is how long a duplicate waits for the attempt in progress before it
	// gets 409 (L8). Default: 0, it doesn't wait. The wait always ends in time
	// to answer before the invocation's own deadline.
	Wait time.Duration
	// MinRunTime is how much of the invocation's time must be left for a request that
	// waited to begin an attempt of its own, and for a message of a batch to begin.
	// If an invocation has hardly as much at its start (it is longer than nine tenths of
	// the function's timeout), the messages of a batch begin while half of the time
	// is left, and a warning says so once if MinRunTime is above the default. Default:
	// 1 s.
	MinRunTime time.Duration
	// RetryAfter is what a 409 [ErrInProgress] or a 503 tells the client, at
	// least; sent in whole seconds, rounded up. Default: 1 s.
	RetryAfter time.Duration

	// Outcome decides what becomes of a response (X1). Default:
	// [DefaultOutcome], which a function of yours may fall back to: given the
	// response that it got, it knows the guard's policy (X2). A text that is no
	// outcome counts as [OutcomeUncertain]. The function gets a copy of the
	// response: changing it has no effect. An answer with a status of 200 to 399
	// whose enlisted writes the outcome drops becomes 500 [ErrWriteInvalid].
	Outcome func(*Response) Outcome
	// FailOpen runs the handler unguarded when the store can't be reached (X5).
	// Default: false, the client gets 503 and the handler does not run.
	FailOpen bool
	// Optimistic runs the handler without taking a lock first, and commits what it
	// enlisted, its answer and the record in one transaction (E4): one round trip
	// for a new request, where the lock makes it two. It is for handlers whose
	// only effects are enlisted writes: every duplicate runs the handler too,
	// before the commit and after it, and has no effect (Options.Cache spares those
	// that the process remembers). Such a
	// handler has no attempt number and no steps. It needs a store with
	// transactions, Policy Rerun, and FailOpen unset. Default: false.
	Optimistic bool
	// FingerprintIgnore are JSON Pointers (RFC 6901) to parts of a payload that don't
	// count: a timestamp or a trace id that each retry has anew (F4). They are left
	// out of JSON bodies over HTTP, and of the payloads of [Do] and [Handler]. A
	// part that is left out and one that is absent are the same; an element's
	// position is that in the whole array; a pointer that leads nowhere changes
	// nothing, and names count with their case. A body that counts byte by byte,
	// being no JSON or ambiguous (F3), has nothing to leave out: all of it counts.
	// The handler must not do by such a part what a retry may not do differently.
	// A pointer that is added makes another payload of what records have that were
	// begun before, where it is in them: their retries get 422 until Options.TTL is
	// over. Default: none.
	FingerprintIgnore []string
	// FingerprintHeaders are request headers that count too, over HTTP, matched
	// without case (F4): a tenant or a currency that stands in none of path, query
	// and body. An absent header is not an empty one; several values count in their
	// order. As with FingerprintIgnore, a change makes retries of older requests
	// get 422. Default: none.
	FingerprintHeaders []string
	// FingerprintSecrets make fingerprints HMAC-SHA256 (RFC 2104) instead of SHA-256,
	// so that whoever reads the table can't search for a payload that can be guessed,
	// such as an amount. Each has at least 16 random bytes. The first one signs new
	// fingerprints; fingerprints by any of them match. [Unsigned] among them stands
	// for fingerprints without a secret. Default: none, fingerprints are unsigned.
	//
	// To change the first entry, to rotate a secret or to introduce the first one
	// ([Unsigned] is the old one then): append the new entry and deploy everywhere;
	// then put it first and deploy everywhere; remove the old one once Options.TTL
	// and the longest attempt have passed since. See docs/operate.md.
	FingerprintSecrets [][]byte
	// MismatchStatus is the status of [ErrPayloadMismatch]: 422 or 409 (F5).
	// Default: 422.
	MismatchStatus int

	// Cache lets finished records be kept in the process too, so that a replay
	// needs no round trip (R4). Default: nothing is kept. Its MaxAge is how late
	// a purge may be noticed.
	Cache CacheOptions

	// ReplayMarks are headers that a replay has and a first answer has not
	// (R2). Default: X-Idempotency-Replayed: true. An empty, non-nil slice:
	// none.
	ReplayMarks []Mark
	// OnReplay may change a replay before it is sent (R2). Default: nil.
	OnReplay func(context.Context, *Request, *Response)
	// OnOwnAnswer may change an answer that the guard makes itself (400, 409,
	// 422, 503 …) before it is sent, to add CORS or tracing headers (R2).
	// Default: nil.
	OnOwnAnswer func(context.Context, *Request, *Response, *Error)
	// UnstoredHeaders are response headers that are kept out of the store, and
	// so out of replays (R2), matched without case: "Set-Cookie" drops cookies
	// too. Default: none.
	UnstoredHeaders []string

	// Observer is told each outcome (O1). Default: [SlogObserver] on
	// slog.Default() for warnings only. To have none, set [Discard].
	Observer Observer
	// ScopePath shortens a concrete path for scopes and events, where a request
	// has no route template: such a path may hold a secret (/reset/TOKEN), and
	// it would stand in the table and in logs. It does not change which record
	// is meant. Default: the whole path.
	ScopePath func(path string) string
	// ShowKeys puts whole idempotency keys into events. Default: false, events
	// have a short hash (O1).
	ShowKeys bool

	// MaxURI is the longest target of a request in bytes: host, path, route and
	// query together; a longer one gets 414 (S2). Default: 16 KiB.
	MaxURI int
	// MaxBody is the largest request body in bytes that is guarded; a larger
	// one gets 413 (S2). Default: 6 MiB, which is more than Lambda accepts.
	MaxBody int
	// MaxHeaders is the largest number of request headers; more get 431 (S2).
	// Default: 500.
	MaxHeaders int
	// MaxJSONDepth is the deepest nesting of a JSON body that counts by value;
	// a deeper one counts byte by byte (F3, S2). Default: 64.
	MaxJSONDepth int

	// MaxStepBytes is how many bytes all steps of a record may have, names and
	// results together (E5). They are written whole with each step, and while a
	// record has them every duplicate that is refused pays for them, a write unit
	// for each KB. Default: 16 KiB. A store may keep less: dynamostore keeps 400 KB,
	// with everything else of the record.
	MaxStepBytes int

	// Clock tells the time of day. Default: time.Now. For tests.
	Clock func() time.Time
	// Random gives tokens and jitter; it must be safe for concurrent use.
	// Default: crypto/rand.Reader. For tests.
	Random io.Reader
}

// defaultMinRunTime is the default of Options.MinRunTime.
const defaultMinRunTime = time.Second

// MinTTL is the shortest Options.TTL, 15 minutes: AWS accepts a request for up to
// 15 minutes after it was signed (Signature Version 4; error RequestExpired), so one
// that was delayed on its way may be as old when it arrives.
const MinTTL = 15 * time.Minute

// Mark is a header that marks a replay.
type Mark struct{ Name, Value string }

// settle fills in the defaults.
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
	o.MaxBody = min(o.MaxBody, math.MaxInt-1) // the middleware reads a byte more
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

// check panics on what is invalid, and names the field.
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

// defaultNamespace names this program as steadily as can be had.
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
