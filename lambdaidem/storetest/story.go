package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// story tests the store with a sequence of calls for one record. Each method, for example
// (*story).acquires, makes one call, checks what the call returns, and then reads the record with
// Get. After the first failure, err is set and the methods do nothing. Methods have these
// parameters in common:
//
//   - label describes the call in error messages.
//   - elapsed is the time from the beginning of the story to the call.
type story struct {
	ctx   context.Context
	store lambdaidem.Store
	base  time.Time // the time at which the story begins: Env.Base
	id    string    // the record's id
	err   error     // why the story failed; nil if it has not failed
}

// story returns a new story, which tests the store with one record. The record's id is made from
// the parameter name, so each step of the suite must use a different name.
func (e Env) story(ctx context.Context, name string) *story {
	return &story{ctx: ctx, store: e.Store, base: e.Base, id: e.id(name)}
}

// at returns the absolute time of a call: the beginning of the story plus elapsed.
func (s *story) at(elapsed time.Duration) time.Time { return s.base.Add(elapsed) }

// Durations that a story uses unless a step chooses others. They count from the time of the
// call.
const (
	leaseLength = time.Minute   // from a claim to the end of its lease
	lockTTL     = time.Hour     // from a claim to the expiry of the record in progress
	answerTTL   = 2 * time.Hour // from a completion to the expiry of the completed record
	releaseTTL  = 3 * time.Hour // from a release to the expiry of the released record
)

// claim returns a claim whose field Over is not set, so that it gets the lease only if the record
// is absent or expired. Claims with different tokens also differ in Fingerprint, Invocation and
// Bound.
func (s *story) claim(token string, elapsed time.Duration) lambdaidem.Claim {
	now := s.at(elapsed)
	return lambdaidem.Claim{
		ID:          s.id,
		Scope:       "orders POST /payments user-1",
		Fingerprint: "fingerprint of " + token,
		Token:       token,
		Now:         now,
		LeaseEnd:    now.Add(leaseLength).Truncate(time.Millisecond),
		Expires:     now.Add(lockTTL).Truncate(time.Second),
		Invocation:  "invocation of " + token,
		Bound:       "claim of " + token,
	}
}

// takeover returns a claim that takes over oldRec, a record that an earlier call returned. Except
// for the field Over, the claim is the result of s.claim(token, elapsed).
func (s *story) takeover(token string, elapsed time.Duration, oldRec lambdaidem.Record) lambdaidem.Claim {
	c := s.claim(token, elapsed)
	c.Over = &oldRec
	return c
}

// answer returns a successful result with the given value. elapsed is the time from the beginning
// of the story to the completion.
func (s *story) answer(elapsed time.Duration, value string) lambdaidem.Result {
	at := s.at(elapsed)
	return lambdaidem.Result{
		Outcome: lambdaidem.OutcomeSucceeded,
		Value:   []byte(value),
		At:      at.Truncate(time.Millisecond),
		Expires: at.Add(answerTTL).Truncate(time.Second),
	}
}

// lease returns a Lease for a call of Complete, Release or SaveSteps by the attempt with the given
// token. elapsed is the time from the beginning of the story to the call.
func (s *story) lease(token string, elapsed time.Duration) lambdaidem.Lease {
	return lambdaidem.Lease{ID: s.id, Token: token, Expires: s.at(elapsed).Add(releaseTTL).Truncate(time.Second), LastFailure: "failure of " + token, Bound: "release of " + token}
}

// acquires calls Acquire and checks that the claim gets the lease. It returns the record that
// the store must now have.
func (s *story) acquires(label string, c lambdaidem.Claim) lambdaidem.Record {
	wantRec := claimed(c)
	s.acquire(label, c, wantRec)
	return wantRec
}

// refuses checks that Acquire does not give the lease to the claim c, and that it returns the
// complete current record.
func (s *story) refuses(label string, c lambdaidem.Claim, current lambdaidem.Record) {
	s.acquire(label, c, current)
}

// acquire calls Acquire and checks that it returns wantRec and no error.
func (s *story) acquire(label string, c lambdaidem.Claim, wantRec lambdaidem.Record) {
	s.check(label, "Acquire", c.Now, wantRec, nil, func() (lambdaidem.Record, error) { return s.store.Acquire(s.ctx, c) })
}

// completes calls Complete with the token of rec, a record in progress, and checks that the result
// r is stored. It returns the record that the store must now have.
func (s *story) completes(label string, rec lambdaidem.Record, r lambdaidem.Result) lambdaidem.Record {
	wantRec := completed(rec, r)
	s.complete(label, rec.Token, r, wantRec, nil)
	return wantRec
}

// losesCompletion calls Complete and checks that it changes nothing and returns ErrLeaseLost
// with the current record.
func (s *story) losesCompletion(label, token string, r lambdaidem.Result, current lambdaidem.Record) {
	s.complete(label, token, r, current, lambdaidem.ErrLeaseLost)
}

// complete calls Complete and checks that it returns wantRec and wantErr.
func (s *story) complete(label, token string, r lambdaidem.Result, wantRec lambdaidem.Record, wantErr error) {
	s.check(label, "Complete", r.At, wantRec, wantErr, func() (lambdaidem.Record, error) {
		return s.store.Complete(s.ctx, lambdaidem.Lease{ID: s.id, Token: token, Expires: r.Expires}, r)
	})
}

// releases calls Release with the token of rec, a record in progress, and checks that the record is
// released. elapsed is the time from the beginning of the story to the call. releases returns the
// record that the store must now have.
func (s *story) releases(label string, rec lambdaidem.Record, elapsed time.Duration) lambdaidem.Record {
	wantRec := rec
	wantRec.State = lambdaidem.Released
	lease := s.lease(rec.Token, elapsed)
	wantRec.Expires, wantRec.LastFailure, wantRec.Bound = lease.Expires, lease.LastFailure, lease.Bound
	s.release(label, rec.Token, elapsed, wantRec, nil)
	return wantRec
}

// losesRelease calls Release and checks that it changes nothing and returns ErrLeaseLost with
// the current record.
func (s *story) losesRelease(label, token string, elapsed time.Duration, current lambdaidem.Record) {
	s.release(label, token, elapsed, current, lambdaidem.ErrLeaseLost)
}

// release calls Release and checks that it returns wantRec and wantErr.
func (s *story) release(label, token string, elapsed time.Duration, wantRec lambdaidem.Record, wantErr error) {
	s.check(label, "Release", s.at(elapsed), wantRec, wantErr, func() (lambdaidem.Record, error) {
		return s.store.Release(s.ctx, s.lease(token, elapsed), s.at(elapsed))
	})
}

// reads checks that Get returns wantRec. elapsed is the time from the beginning of the story to the
// call.
func (s *story) reads(label string, elapsed time.Duration, wantRec lambdaidem.Record) {
	s.readsAt(label, s.at(elapsed), wantRec)
}

// readsAt is like reads, but callTime is the absolute time of the call.
func (s *story) readsAt(label string, callTime time.Time, wantRec lambdaidem.Record) {
	if s.err != nil {
		return
	}
	gotRec, err := s.store.Get(s.ctx, s.id, callTime)
	switch {
	case err != nil:
		s.err = fmt.Errorf("%s: Get returned an error, want none: %w", label, err)
	default:
		s.compare(label+": Get", gotRec, wantRec)
	}
}

// check runs the parameter call, a function that calls a method of the store. That function must
// return wantRec and wantErr, which is nil or ErrLeaseLost. Get must then also return wantRec at
// callTime. The parameter method is the name of the store's method, for error messages.
func (s *story) check(label, method string, callTime time.Time, wantRec lambdaidem.Record, wantErr error, call func() (lambdaidem.Record, error)) {
	if s.err != nil {
		return
	}
	gotRec, err := call()
	switch {
	case err == nil && wantErr != nil:
		s.err = fmt.Errorf("%s: %s returned no error, want ErrLeaseLost (%w) and an unchanged record", label, method, wantErr)
	case err != nil && wantErr == nil:
		s.err = fmt.Errorf("%s: %s returned an error, want none: %w", label, method, err)
	case !errors.Is(err, wantErr):
		s.err = fmt.Errorf("%s: %s returned the wrong error, want ErrLeaseLost (%w): %w", label, method, wantErr, err)
	default:
		s.compare(label+": "+method, gotRec, wantRec)
	}
	s.readsAt("after "+label, callTime, wantRec)
}

// compare checks that gotRec, the record that the call returned, equals wantRec. If the store keeps
// an answer separately from the record, compare loads the answer first.
func (s *story) compare(call string, gotRec, wantRec lambdaidem.Record) {
	gotRec, err := s.loaded(gotRec)
	if err == nil {
		wantRec, err = s.loaded(wantRec)
	}
	if err != nil {
		s.err = fmt.Errorf("%s returned a wrong answer: %w", call, err)
		return
	}
	s.err = mismatch(call, gotRec, wantRec)
}

// loaded returns the record r with its answer. If the store keeps the answer separately from the
// record, loaded loads the answer with the store's method Load.
func (s *story) loaded(r lambdaidem.Record) (lambdaidem.Record, error) {
	if r.Result.Apart == nil {
		return r, nil
	}
	loader, ok := s.store.(lambdaidem.Loader)
	if !ok {
		return r, errors.New("Result.Apart is set, but the store does not implement lambdaidem.Loader")
	}
	if r.Result.Value != nil || r.Result.Failure != nil {
		return r, errors.New("Result.Apart is set, so Result.Value and Result.Failure must be nil")
	}
	result, err := loader.Load(s.ctx, r)
	switch {
	case err != nil:
		return r, fmt.Errorf("the Load returned an error, want none: %w", err)
	case result.Apart != nil:
		return r, errors.New("the Load returned a Result with Apart set; it must have the Value or the Failure instead")
	}
	r.Result = result
	return r, nil
}

// claimed returns the record that a store must have after the claim got the lease.
func claimed(c lambdaidem.Claim) lambdaidem.Record {
	r := lambdaidem.Record{
		ID:          c.ID,
		State:       lambdaidem.InProgress,
		Token:       c.Token,
		Attempt:     1,
		LeaseEnd:    c.LeaseEnd,
		Expires:     c.Expires,
		Fingerprint: c.Fingerprint,
		Scope:       c.Scope,
		StartedAt:   c.Now.Truncate(time.Millisecond),
		Invocation:  c.Invocation,
		Bound:       c.Bound,
	}
	if c.Over != nil {
		r.Attempt = c.Over.Attempt + 1
	}
	return r
}

// completed returns the record that a store must have after r was completed with result.
func completed(r lambdaidem.Record, result lambdaidem.Result) lambdaidem.Record {
	r.State = lambdaidem.Completed
	r.Expires = result.Expires
	r.CompletedAt = result.At
	r.Result = result
	r.Steps = nil
	return r
}

// mismatch returns an error that describes how gotRec, the record that the call returned, differs
// from wantRec. It returns nil if the two records are equal.
func mismatch(call string, gotRec, wantRec lambdaidem.Record) error {
	diffs := differences(gotRec, wantRec)
	switch {
	case len(diffs) == 0:
		return nil
	case len(differences(gotRec, lambdaidem.Record{})) == 0:
		return fmt.Errorf("%s returned the zero Record, as if there were no record; want one with State %q", call, wantRec.State)
	case len(differences(wantRec, lambdaidem.Record{})) == 0:
		return fmt.Errorf("%s returned a record with State %q; want the zero Record, because there is no record or it has expired", call, gotRec.State)
	default:
		return fmt.Errorf("%s returned a wrong record: %s", call, strings.Join(diffs, "; "))
	}
}

// differences returns one text for each field that is different in gotRec and wantRec.
func differences(gotRec, wantRec lambdaidem.Record) []string {
	var diffs []string
	differs := func(field string, same bool, got, want any) {
		if !same {
			diffs = append(diffs, fmt.Sprintf("%s is %v, want %v", field, got, want))
		}
	}
	same := func(field string, got, want any) {
		differs(field, got == want, fmt.Sprintf("%#v", got), fmt.Sprintf("%#v", want))
	}
	moment := func(field string, got, want time.Time) {
		differs(field, got.Equal(want), timeText(got), timeText(want))
	}
	same("ID", gotRec.ID, wantRec.ID)
	same("State", string(gotRec.State), string(wantRec.State))
	same("Token", gotRec.Token, wantRec.Token)
	same("Attempt", gotRec.Attempt, wantRec.Attempt)
	moment("LeaseEnd", gotRec.LeaseEnd, wantRec.LeaseEnd)
	moment("Expires", gotRec.Expires, wantRec.Expires)
	same("Fingerprint", gotRec.Fingerprint, wantRec.Fingerprint)
	same("Scope", gotRec.Scope, wantRec.Scope)
	moment("StartedAt", gotRec.StartedAt, wantRec.StartedAt)
	same("Invocation", gotRec.Invocation, wantRec.Invocation)
	same("LastFailure", gotRec.LastFailure, wantRec.LastFailure)
	same("Bound", gotRec.Bound, wantRec.Bound)
	moment("CompletedAt", gotRec.CompletedAt, wantRec.CompletedAt)
	same("Result.Outcome", gotRec.Result.Outcome, wantRec.Result.Outcome)
	differs("Result.Value", bytes.Equal(gotRec.Result.Value, wantRec.Result.Value), excerpt(gotRec.Result.Value), excerpt(wantRec.Result.Value))
	differs("Result.Failure", failure(gotRec) == failure(wantRec), failure(gotRec), failure(wantRec))
	moment("Result.At", gotRec.Result.At, wantRec.Result.At)
	moment("Result.Expires", gotRec.Result.Expires, wantRec.Result.Expires)
	differs("Steps", maps.EqualFunc(gotRec.Steps, wantRec.Steps, bytes.Equal), stepsText(gotRec.Steps), stepsText(wantRec.Steps))
	return diffs
}

// timeText returns a time as text for a message; "zero" for the zero time.
func timeText(t time.Time) string {
	if t.IsZero() {
		return "zero"
	}
	return t.Format(time.RFC3339Nano)
}

// failure returns a record's failure as text for a message, or "none" if the record has none.
func failure(r lambdaidem.Record) string {
	if r.Result.Failure == nil {
		return "none"
	}
	return fmt.Sprintf("%#v", *r.Result.Failure)
}

// excerpt returns an answer as text for a message, cut to its first 64 bytes.
func excerpt(b []byte) string {
	const most = 64
	if len(b) <= most {
		return fmt.Sprintf("%q", b)
	}
	return fmt.Sprintf("%q… (%d bytes)", b[:most], len(b))
}
