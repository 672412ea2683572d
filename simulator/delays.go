package simulator

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
)

// This file limits the delay of requests. DynamoDB refuses a request whose signature is too old, so
// no later request is applied. A record's item stays in the table for longer than that after the
// record has expired (lambdaidem.KeptAfterExpiry). So a late request always finds the item, and its
// condition fails.

// signatureLife is how long DynamoDB accepts a request after it was signed.
const signatureLife = 15 * time.Minute

// newDelays draws how late requests may be, and how slowly everybody acts. It draws from a random
// stream of its own, so that the rest of each plan does not depend on it.
func newDelays(seed uint64, p *plan) {
	r := rand.New(rand.NewPCG(seed, 0xde1a7))
	p.lateBy = 20 * time.Second
	if r.Float64() < 0.25 {
		p.lateBy = signatureLife + 2*time.Minute
	}
	if p.ttl < 24*time.Hour { // slow enough for records to expire during the run
		p.pace = []int{40, 200, 600}[r.IntN(3)]
	}
}

// paced multiplies a duration by the plan's pace.
func (p *plan) paced(d time.Duration) time.Duration { return time.Duration(max(p.pace, 1)) * d }

// lateness returns the delay of a late request. If most is longer than the life of a signature,
// half of the requests arrive shortly before or after their signature expires.
func (w *world) lateness(most time.Duration) time.Duration {
	if most > signatureLife && w.rng.IntN(2) == 0 {
		return signatureLife - 30*time.Second + w.randomMillis(60_000)
	}
	return w.randomMillis(int(most / time.Millisecond))
}

// signedAt returns when a request was signed: its X-Amz-Date, in whole seconds. It returns the
// current time if the request has none.
func signedAt(req *http.Request) time.Time {
	if at, err := time.Parse("20060102T150405Z", req.Header.Get("X-Amz-Date")); err == nil {
		return at
	}
	return time.Now()
}

// outlived returns DynamoDB's reply to a request whose signature has expired, or nil if the
// signature is still valid.
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
