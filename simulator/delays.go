package simulator

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
)

// What bounds a delayed request. DynamoDB refuses a request whose signature is too
// old, so nothing arrives later than that; and a record's item outlives its expiry by
// more (lambdaidem.KeptAfterExpiry), so a late request always finds what refuses it.

// signatureLife is how long DynamoDB accepts a request after it was signed.
const signatureLife = 15 * time.Minute

// newDelays draws how late requests may be, and how slowly everybody acts, from a
// stream of its own.
func newDelays(seed uint64, p *plan) {
	r := rand.New(rand.NewPCG(seed, 0xde1a7))
	p.lateBy = 20 * time.Second
	if r.Float64() < 0.25 {
		p.lateBy = signatureLife + 2*time.Minute
	}
	if p.ttl < 24*time.Hour { // so slowly that records expire meanwhile
		p.pace = []int{40, 200, 600}[r.IntN(3)]
	}
}

// paced stretches a time that somebody takes.
func (p *plan) paced(d time.Duration) time.Duration { return time.Duration(max(p.pace, 1)) * d }

// lateness returns how long a late request takes: half of those that may outlive their
// signature arrive just before or after that.
func (w *world) lateness(most time.Duration) time.Duration {
	if most > signatureLife && w.rng.IntN(2) == 0 {
		return signatureLife - 30*time.Second + w.randomMillis(60_000)
	}
	return w.randomMillis(int(most / time.Millisecond))
}

// signedAt is when a request was signed: its X-Amz-Date, in whole seconds.
func signedAt(req *http.Request) time.Time {
	if at, err := time.Parse("20060102T150405Z", req.Header.Get("X-Amz-Date")); err == nil {
		return at
	}
	return time.Now()
}

// outlived is DynamoDB's answer to a request whose signature is too old; nil if it
// still holds.
func (r *request) outlived() *reply {
	now := time.Now()
	if now.Sub(r.signed) <= signatureLife {
		return nil
	}
	stamp := func(t time.Time) string { return t.UTC().Format("20060102T150405Z") }
	status, header, body := memdynamo.Error(memdynamo.InvalidSignature, fmt.Sprintf("Signature expired: %s is now earlier than %s (%s - 15 min.)",
		stamp(r.signed), stamp(now.Add(-signatureLife)), stamp(now)))
	return &reply{status: status, header: header, body: body}
}
