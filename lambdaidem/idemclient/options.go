package idemclient

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Options are the client's settings. An option function gets them with the
// defaults filled in; a field that it sets to its zero value has its documented
// default again. [New] panics on an invalid value and names the field.
type Options struct {
	// KeyHeader is the header that carries the idempotency key. Default:
	// "Idempotency-Key".
	KeyHeader string
	// NewKey makes the key of a request that has none: of what the request is for,
	// say. It is called once for each request, not for its retries and redirects,
	// by several goroutines at once, and must leave the request and its body alone.
	// An error, or a key that is not 1 to 255 printable ASCII characters without
	// spaces at the ends, becomes RoundTrip's error. Default: [RandomKey].
	NewKey func(*http.Request) (string, error)

	// Methods are the HTTP methods that are guarded, in any case. Default: POST,
	// PATCH.
	Methods []string
	// Skip lets a request to a given host pass untouched: a route that doesn't
	// honour keys, say. Default: none is skipped.
	Skip func(*http.Request) bool

	// MaxAttempts is how often a request is sent at most, the first time counted.
	// Default: 6. With 1 there are keys and no retries.
	MaxAttempts int
	// InitialWait is the wait before the second attempt; each one after it is twice
	// as long. Up to half of a wait is added or taken at random. Default: 200 ms, so
	// that the default number of attempts is spread over about 6 s.
	InitialWait time.Duration
	// MaxWait is the longest wait before jitter, at least InitialWait and at most 146
	// years.
	// Default: 10 s.
	MaxWait time.Duration
	// MaxRetryAfter is the longest Retry-After that is waited for; an answer with a
	// longer one is handed on. Default: 1 minute.
	MaxRetryAfter time.Duration
	// MaxBuffer is the longest body in bytes that is kept in memory for retries,
	// where the request has no GetBody. Default: 6 MiB, which is what Lambda
	// accepts.
	MaxBuffer int64

	// Observe is told each attempt at a guarded request when it has ended, and
	// before the wait for the next one, on the goroutine of the request: it should
	// be quick and must be safe for concurrent use. Default: nobody is told.
	Observe func(context.Context, Attempt)
}

// Attempt is one sending of a guarded request, for logs and counters. It has
// neither the key nor the path, which may be a secret.
type Attempt struct {
	Number   int           // 1 is the first
	Method   string        // as the request has it
	Host     string        // host and port that it was sent to, as its URL has them
	Status   int           // of the answer; 0: there was none
	Code     string        // the problem document's "code", where it was read; it is the server's text
	Err      error         // why there was no answer, or why its problem document could not be read
	Duration time.Duration // until the answer's header, or the error
	Retry    bool          // another attempt follows, unless the context ends before
	Wait     time.Duration // until it does; 0 if none follows
}

// settle fills in the defaults.
func (o Options) settle() Options {
	defaultTo(&o.KeyHeader, "Idempotency-Key")
	if o.NewKey == nil {
		o.NewKey = func(*http.Request) (string, error) { return RandomKey(), nil }
	}
	if o.Methods == nil {
		o.Methods = []string{http.MethodPost, http.MethodPatch}
	}
	upper := make([]string, len(o.Methods))
	for i, m := range o.Methods {
		upper[i] = strings.ToUpper(m)
	}
	o.Methods = upper
	defaultTo(&o.MaxAttempts, 6)
	defaultTo(&o.InitialWait, 200*time.Millisecond)
	defaultTo(&o.MaxWait, 10*time.Second)
	defaultTo(&o.MaxRetryAfter, time.Minute)
	defaultTo(&o.MaxBuffer, 6<<20)
	return o
}

// check panics on what is invalid, and names the field.
func (o Options) check() {
	check := func(ok bool, field, want string, got any) {
		if !ok {
			panic(fmt.Sprintf("idemclient: Options.%s is %v; it must be %s", field, got, want))
		}
	}
	check(isToken(o.KeyHeader), "KeyHeader", "a header name", o.KeyHeader)
	check(len(o.Methods) > 0 && !slices.ContainsFunc(o.Methods, func(m string) bool { return !isToken(m) }),
		"Methods", "HTTP methods, none empty", o.Methods)
	check(o.MaxAttempts > 0, "MaxAttempts", "positive", o.MaxAttempts)
	check(o.InitialWait > 0, "InitialWait", "positive", o.InitialWait)
	check(o.MaxWait >= o.InitialWait, "MaxWait", "at least InitialWait", o.MaxWait)
	check(o.MaxWait <= math.MaxInt64/2, "MaxWait", "at most 146 years, so that jitter can be added", o.MaxWait)
	check(o.MaxRetryAfter > 0, "MaxRetryAfter", "positive", o.MaxRetryAfter)
	check(o.MaxBuffer > 0, "MaxBuffer", "positive", o.MaxBuffer)
}

func defaultTo[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// isToken: what methods and header names are made of (RFC 9110, 5.6.2).
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		letterOrDigit := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letterOrDigit && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}
