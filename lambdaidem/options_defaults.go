package lambdaidem

import (
	"bytes"
	"crypto/rand"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"
)

// withDefaults returns a copy of the options with each zero field set to its default.
func (o Options) withDefaults() Options {
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
	o.Cache = o.Cache.withDefaults()
	if o.ReplayMarks == nil {
		o.ReplayMarks = []Mark{{defaultReplayMark, "true"}}
	}
	if o.Observer == nil {
		o.Observer = warnings{}
	}
	defaultTo(&o.MaxURI, 16<<10)
	defaultTo(&o.MaxBody, 6<<20)
	o.MaxBody = min(o.MaxBody, math.MaxInt-1) // so that MaxBody+1, which the middleware reads, does not overflow
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

// defaultMinRunTime is the default of Options.MinRunTime.
const defaultMinRunTime = time.Second

func defaultTo[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
