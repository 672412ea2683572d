package lambdaidem

import "time"

// result returns the Result to store: with the handler's encoded answer if end.encoded is true,
// otherwise with the handler's error as a failure. If the answer can't be encoded, result returns
// the reason as its error, and a Result with the failure ErrAnswerUnavailable, which every later
// call receives.
func (a *attempt) result(w work, end ending) (Result, error) {
	r := a.emptyResult(end)
	if !end.encoded {
		r.Failure = a.g.failureOf(end.err, end.outcome)
		return r, nil
	}
	value, err := w.encode()
	if err != nil {
		return a.withoutAnswer(end), err
	}
	r.Value = value
	return r, nil
}

// withoutAnswer returns the result to store for an answer that can't be encoded or is too
// large. Later calls get ErrAnswerUnavailable, and the handler does not run again.
func (a *attempt) withoutAnswer(end ending) Result {
	r := a.emptyResult(end)
	r.Failure = answerNotKept()
	return r
}

// emptyResult returns a result without Value and Failure. The caller adds one of the two. The field
// At is the current time in whole milliseconds, or later: each result of an attempt has a different
// At, so that isResult can tell the results apart. emptyResult also sets lastResultMade to the
// exact current time: Options.Cache counts the age of an entry from it.
func (a *attempt) emptyResult(end ending) Result {
	a.lastResultMade = a.g.opts.Clock()
	now := a.lastResultMade.Truncate(time.Millisecond)
	if !now.After(a.lastResultAt) {
		now = a.lastResultAt.Add(time.Millisecond)
	}
	a.lastResultAt = now
	return Result{Outcome: end.outcome, At: now, Expires: a.expires(now)}
}

// isResult reports whether a record has the result that this attempt has sent to the store.
// recorded is the record's result, and result is the attempt's. isResult compares only the field
// At, because any two results of one attempt have different times.
func isResult(recorded, result Result) bool { return recorded.At.Equal(result.At) }

// expires returns the expiry of a record that is completed or released at the time now: Options.TTL
// later, in whole seconds.
func (a *attempt) expires(now time.Time) time.Time {
	return ceil(now.Add(a.g.opts.TTL), time.Second)
}
