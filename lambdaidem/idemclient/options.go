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

// Options are the options of [New]. An option function receives them with the defaults set. A
// field that it sets to the zero value gets its default again. New panics if a value is not
// valid. The panic's text names the field.
type Options struct {
	// KeyHeader is the header that carries the idempotency key. Default:
	// "Idempotency-Key".
	KeyHeader string
	// NewKey returns the key of a request that has none. It is called once for each
	// request, and not for retries and redirects. It must be safe for concurrent use,
	// and must not change the request or read its body. If it returns an error, or a key
	// that is not 1 to 255 printable ASCII characters without a space at either end,
	// RoundTrip returns an error. Default: [RandomKey].
	NewKey func(*http.Request) (string, error)

	// Methods are the HTTP methods whose requests are guarded, in upper or lower case.
	// Default: POST, PATCH.
	Methods []string
	// Skip reports whether to send a request once and without a key, for example because
	// its route doesn't honor keys. Default: nil, which skips no request.
	Skip func(*http.Request) bool

	// MaxAttempts is the maximum number of times a request is sent, including the first
	// time. With 1, requests get keys but no retries. Default: 6.
	MaxAttempts int
	// InitialWait is the wait before the second attempt. Each later wait is twice as
	// long as the one before. A random part, up to half of the wait, is added or
	// subtracted. Default: 200 ms, which spreads six attempts over about 6 s.
	InitialWait time.Duration
	// MaxWait is the longest wait between attempts, before jitter and the server's Retry-After
	// are added. It must be at least InitialWait. It must be at most 146 years, so that jitter can
	// be added without exceeding the longest time.Duration. Default: 10 s.
	MaxWait time.Duration
	// MaxRetryAfter is the longest Retry-After that the client waits for. If a response has a
	// longer Retry-After, the caller gets that response at once. Default: 1 minute.
	MaxRetryAfter time.Duration
	// MaxBuffer is the size in bytes of the largest body that is read into memory, so that the
	// request can be retried. A request with a larger body is sent only once. A request that has
	// GetBody can be retried whatever its size, because its body need not be read into memory.
	// Default: 6 MiB, Lambda's limit for a request.
	MaxBuffer int64

	// Observe is called after each attempt of a guarded request, before the wait for the next
	// attempt, in the goroutine of the request. It should be quick, and must be safe for
	// concurrent use. Default: nil.
	Observe func(context.Context, Attempt)
}

// Attempt describes one attempt of a guarded request, for logs and metrics. It includes neither
// the key nor the path, because both may be secret.
type Attempt struct {
	Number   int           // number of the attempt; 1 is the first
	Method   string        // the request's method
	Host     string        // host and port of the request's URL
	Status   int           // status code of the response; 0 if there was none
	Code     string        // "code" of the response's problem document, a text chosen by the server; empty if none was read
	Err      error         // why there was no response, or why its problem document could not be read
	Duration time.Duration // time until the response's header arrived or the attempt failed
	Retry    bool          // another attempt follows, unless the context ends first
	Wait     time.Duration // wait before the next attempt; 0 if there is none
}

// withDefaults returns the options with the defaults filled in and Methods in upper case.
func (o Options) withDefaults() Options {
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

// check panics if a value is not valid.
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

// defaultTo sets *field to value if it has the zero value.
func defaultTo[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// isToken reports whether s is a token, which every method and header name must be (RFC 9110,
// section 5.6.2).
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		letterOrDigit := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letterOrDigit && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}
