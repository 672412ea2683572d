package lambdaidem

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// AttemptHeader is the name of a request header. Its value is the number of times that the client
// has sent the request, including this time: 2 for the first retry. Package idemclient sets it on
// retries. The guard itself ignores it. [SentAgain], a function for Options.Repeated, reads it.
const AttemptHeader = "Idempotency-Attempt"

// SentAgain reports whether the header [AttemptHeader] says that the client has sent the
// request before. It is meant for Options.Repeated.
func SentAgain(r *Request) bool {
	return slices.ContainsFunc(r.Values(AttemptHeader), aboveOne)
}

// Redelivered reports whether SQS has delivered the message before, according to its
// attribute ApproximateReceiveCount. It is meant for BatchOptions.Repeated.
func Redelivered(m events.SQSMessage) bool {
	return aboveOne(m.Attributes["ApproximateReceiveCount"])
}

func aboveOne(number string) bool {
	n, err := strconv.Atoi(number)
	return err == nil && n > 1
}

// lookUp reads the record of a call that probably repeats an earlier one; see Options.Repeated. If
// the record has an answer, finished is true, and d replays the answer. Otherwise, even if the read
// failed, the caller must go on and acquire the record.
//
// If the record has steps, is damaged, or does not permit the call to run now, lookUp sets
// a.needsLease: even with Options.FailOpen, the handler must not run without a lease.
func (a *attempt) lookUp(request context.Context) (d decision, finished bool) {
	if !a.call.repeated {
		return decision{}, false
	}
	a.setAnswerTime()
	ctx, cancel := withDeadline(request, a.acquireEnd())
	defer cancel()
	if ctx.Err() != nil {
		return decision{}, false
	}
	rec, err := a.readInHalfTheTime(ctx)
	if err != nil {
		// The handler must not run without a lease if the record is damaged or from another tool.
		a.needsLease = reasonOf(err) == ReasonForeign
		a.report(request, EventStoreError, err)
		return decision{}, false
	}
	recMeaning := a.meaningOf(rec)
	if recMeaning == isFinished {
		return a.fromRecord(ctx, recMeaning, rec), true
	}
	// A run without a lease could repeat the steps of the record, or run beside another attempt.
	a.needsLease = recMeaning != isFree || len(rec.Steps) > 0
	return decision{}, false
}

// readInHalfTheTime reads the record. It uses at most half of the time until ctx ends, so that
// a slow read leaves the other half for acquiring the record.
func (a *attempt) readInHalfTheTime(ctx context.Context) (Record, error) {
	start := time.Now()
	defer a.addStoreTime(start)
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, end.Sub(start)/2)
		defer cancel()
	}
	return a.g.store.Get(ctx, a.id, a.g.opts.Clock())
}
