package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// variant is a small store in memory with one fault. Without a fault, it is a correct store.
type variant struct {
	fault   fault
	mu      sync.Mutex
	records map[string]lambdaidem.Record
	latest  time.Time // the latest time of any call
}

func newVariant(f fault) *variant {
	return &variant{fault: f, records: map[string]lambdaidem.Record{}}
}

func (v *variant) has(f fault) bool { return v.fault == f }

func (v *variant) Acquire(ctx context.Context, c lambdaidem.Claim) (lambdaidem.Record, error) {
	if err := v.ended(ctx, "acquire"); err != nil {
		return lambdaidem.Record{}, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.has(completionReadsThenWrites) {
		v.pause(time.Millisecond) // lets a concurrent Complete read before this Acquire and write after it
	}
	if v.has(expiredDeletedAtOnce) {
		maps.DeleteFunc(v.records, func(_ string, r lambdaidem.Record) bool { return r.GoneAt(c.Now) })
	}
	r := v.at(c.ID, c.Now)
	if v.has(takeoverIgnoresExpiry) && c.Over != nil {
		r = v.records[c.ID]
	}
	expired := r.State == lambdaidem.Absent && v.records[c.ID].State != lambdaidem.Absent
	if v.has(acquireReadsThenWrites) && c.Over == nil ||
		v.has(expiredReadsThenWrites) && expired ||
		v.has(takeoverReadsThenWrites) && c.Over != nil {
		v.pause(time.Millisecond) // lets every other racer read before this one writes
	}

	switch {
	case c.Over == nil && !v.isFree(r, c):
		return v.refused(r, c), nil
	case c.Over != nil && (!v.isUnchanged(r, *c.Over) || v.has(heldNeverTaken) && r.Held()):
		return v.refused(r, c), nil
	}

	n := lambdaidem.Record{
		ID: c.ID, State: lambdaidem.InProgress, Token: c.Token, Attempt: 1, LeaseEnd: c.LeaseEnd, Expires: c.Expires,
		Fingerprint: c.Fingerprint, Scope: c.Scope, StartedAt: c.Now.Truncate(time.Millisecond), Invocation: c.Invocation, Bound: c.Bound,
	}
	if v.has(acquireDropsInvocation) {
		n.Invocation = ""
	}
	if c.Over != nil {
		n.Attempt = r.Attempt + 1
		if v.has(takeoverKeepsAttempt) {
			n.Attempt = r.Attempt
		}
		if v.has(releasedTakeoverKeepsAttempt) && r.State == lambdaidem.Released {
			n.Attempt = r.Attempt
		}
		if v.has(takeoverKeepsFingerprint) {
			n.Fingerprint = r.Fingerprint
		}
		if v.has(takeoverKeepsBound) {
			n.Bound = r.Bound
		}
		if v.has(takeoverKeepsScope) {
			n.Scope = r.Scope
		}
		if v.has(takeoverKeepsLeaseEnd) {
			n.LeaseEnd = r.LeaseEnd
		}
		if v.has(takeoverKeepsStart) {
			n.StartedAt = r.StartedAt
		}
		if v.has(takeoverKeepsInvocation) {
			n.Invocation = r.Invocation
		}
		if v.has(takeoverKeepsLastFailure) {
			n.LastFailure = r.LastFailure
		}
		if v.has(takeoverKeepsExpiryWithoutOwn) && c.Expires.IsZero() {
			n.Expires = r.Expires
		}
		n.Steps = r.Steps
		switch {
		case v.has(takeoverDropsSteps):
			n.Steps = nil
		case v.has(takeoverKeepsSeenSteps):
			n.Steps = c.Over.Steps
		}
	}
	if old := v.records[c.ID]; old.State != lambdaidem.Absent && c.Over == nil {
		if v.has(freshLockKeepsAttempt) {
			n.Attempt = old.Attempt + 1
		}
		if v.has(freshLockKeepsAnswer) {
			n.Result, n.CompletedAt = old.Result, old.CompletedAt
		}
		if v.has(freshLockKeepsSteps) {
			n.Steps = old.Steps
		}
	}
	if v.has(leaseEndInSeconds) {
		n.LeaseEnd = n.LeaseEnd.Truncate(time.Second)
	}
	if v.has(startInNanoseconds) {
		n.StartedAt = c.Now
	}
	if v.has(holdExpires) && n.Expires.IsZero() {
		n.Expires = n.LeaseEnd.Add(24 * time.Hour).Truncate(time.Second)
	}
	if v.has(scopeAsASCII) {
		n.Scope = strings.Map(func(r rune) rune {
			if r > 126 {
				return '?'
			}
			return r
		}, n.Scope)
	}
	if v.has(emptyFingerprintRefused) && n.Fingerprint == "" {
		return lambdaidem.Record{}, &lambdaidem.StoreError{Op: "acquire", Reason: lambdaidem.ReasonInvalid, NotApplied: true, Err: errors.New("an attribute is empty")}
	}
	n = v.put(n)
	if v.has(takeoverRepliesWithoutSteps) {
		n.Steps = nil
	}
	return n, nil
}

// isFree reports whether a claim without Over gets the lease on r. A correct store gives it only if
// r is absent.
func (v *variant) isFree(r lambdaidem.Record, c lambdaidem.Claim) bool {
	switch r.State {
	case lambdaidem.Absent:
		return true
	case lambdaidem.InProgress:
		return v.has(acquireTakesDeadLease) && !r.LeaseLiveAt(c.Now) ||
			v.has(acquireTakesLiveLease) && r.Token != c.Token ||
			v.has(ownTokenLocksAgain) && r.Token == c.Token
	case lambdaidem.Released:
		return v.has(acquireTakesReleased)
	default:
		return v.has(acquireTakesCompleted)
	}
}

// isUnchanged reports whether r, the current record, is still oldRec, so that a takeover may
// replace it.
func (v *variant) isUnchanged(r, oldRec lambdaidem.Record) bool {
	switch {
	case r.State == lambdaidem.Absent:
		return v.has(takeoverCreates)
	case r.State == lambdaidem.Completed:
		return v.has(takeoverTakesCompleted) && oldRec.State == lambdaidem.Completed ||
			v.has(takeoverIgnoresState) && r.Token == oldRec.Token && r.LeaseEnd.Equal(oldRec.LeaseEnd)
	case r.State == lambdaidem.Released && v.has(takeoverRefusesReleased):
		return false
	}
	end := r.LeaseEnd.Equal(oldRec.LeaseEnd)
	if v.has(takeoverComparesEndInSeconds) {
		end = r.LeaseEnd.Unix() == oldRec.LeaseEnd.Unix()
	}
	return (r.Token == oldRec.Token || v.has(takeoverIgnoresToken)) &&
		(r.State == oldRec.State || v.has(takeoverIgnoresState)) &&
		(end || v.has(takeoverIgnoresEnd))
}

// refused returns the record that Acquire returns if it refuses the claim c.
func (v *variant) refused(r lambdaidem.Record, c lambdaidem.Claim) lambdaidem.Record {
	if v.has(refusalShowsExpired) && r.State == lambdaidem.Absent {
		return copied(v.records[c.ID])
	}
	if v.has(ownTokenNotRecognised) && r.State == lambdaidem.InProgress && r.Token == c.Token {
		r.Token = "somebody else's"
	}
	if v.has(refusalWithoutAnswer) {
		r.Result = lambdaidem.Result{}
	}
	if v.has(refusalWithoutFingerprint) {
		r.Fingerprint = ""
	}
	if v.has(refusalWithoutSteps) {
		r.Steps = nil
	}
	if v.has(refusalSharesAnswer) {
		return r
	}
	return copied(r)
}

func (v *variant) Complete(ctx context.Context, l lambdaidem.Lease, res lambdaidem.Result) (lambdaidem.Record, error) {
	if err := v.ended(ctx, "complete"); err != nil {
		return lambdaidem.Record{}, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	r := v.at(l.ID, res.At)
	if v.has(completionIgnoresExpiry) {
		r = v.records[l.ID]
	}
	if v.has(completionReadsThenWrites) {
		v.pause(2 * time.Millisecond)
	}
	ours := r.Token == l.Token
	switch {
	case r.State == lambdaidem.Absent && v.has(completionCreates):
		r.ID, r.Token, r.Attempt = l.ID, l.Token, 1
	case r.State == lambdaidem.InProgress && v.has(lateCompletionLost) && !r.LeaseLiveAt(res.At):
		return copied(r), lambdaidem.ErrLeaseLost
	case r.State == lambdaidem.InProgress && (ours || v.has(completionUnfenced)):
	case r.State == lambdaidem.Released && ours && v.has(releasedCompletes):
	case r.State == lambdaidem.Completed && ours:
		if v.has(repeatedCompletionLost) {
			return copied(r), lambdaidem.ErrLeaseLost
		}
		if !v.has(repeatedCompletionOverwrites) {
			return v.replied(r), nil
		}
	case v.has(lostCompletionAsSuccess):
		return copied(r), nil
	case v.has(lostWithoutRecord):
		return lambdaidem.Record{}, lambdaidem.ErrLeaseLost
	case v.has(refusalShowsExpired) && r.State == lambdaidem.Absent:
		return copied(v.records[l.ID]), lambdaidem.ErrLeaseLost
	default:
		return copied(r), lambdaidem.ErrLeaseLost
	}

	r.State, r.CompletedAt, r.Result = lambdaidem.Completed, res.At, copiedResult(res)
	if v.has(completionDropsInvocation) {
		r.Invocation = ""
	}
	if !v.has(completionKeepsSteps) {
		r.Steps = nil
	}
	if v.has(inputShared) {
		r.Result = res
	}
	if !v.has(completionKeepsLockExpiry) {
		r.Expires = res.Expires
	}
	if v.has(completionEndsLease) {
		r.LeaseEnd = res.At
	}
	if v.has(momentsInSeconds) {
		r.CompletedAt = r.CompletedAt.Truncate(time.Second)
		r.Result.At = r.CompletedAt
	}
	if v.has(valueAsUTF8) {
		r.Result.Value = bytes.ToValidUTF8(r.Result.Value, []byte("\uFFFD"))
	}
	if v.has(valueTrimmed) {
		r.Result.Value = bytes.TrimSpace(r.Result.Value)
	}
	if v.has(valueCut) {
		r.Result.Value = r.Result.Value[:min(len(r.Result.Value), 64<<10)]
	}
	if v.has(emptyValueAsNull) && len(r.Result.Value) == 0 && r.Result.Failure == nil {
		r.Result.Value = []byte("null")
	}
	if v.has(emptyValueAsFailure) && len(r.Result.Value) == 0 && r.Result.Failure == nil {
		r.Result.Failure = &lambdaidem.Failure{}
	}
	if v.has(outcomeDropped) {
		r.Result.Outcome = lambdaidem.OutcomeSucceeded
	}
	if f := r.Result.Failure; f != nil {
		switch {
		case v.has(failureDropped):
			r.Result.Failure = nil
		case v.has(failureWithoutStatus):
			f.Status = 0
		case v.has(failureWithoutType):
			f.Type = ""
		case v.has(failureAsValueToo):
			r.Result.Value = []byte(f.Message)
		}
	}
	return v.replied(v.put(r)), nil
}

// pause unlocks the store for d, so that other racers can run. It is called only in a synctest
// bubble, where it takes no real time and ends only after all other goroutines have blocked.
func (v *variant) pause(d time.Duration) {
	v.mu.Unlock()
	time.Sleep(d)
	v.mu.Lock()
}

// replied returns the record that Complete returns.
func (v *variant) replied(r lambdaidem.Record) lambdaidem.Record {
	if v.has(replyShared) {
		return v.records[r.ID]
	}
	return copied(r)
}

func (v *variant) Release(ctx context.Context, l lambdaidem.Lease, now time.Time) (lambdaidem.Record, error) {
	if err := v.ended(ctx, "release"); err != nil {
		return lambdaidem.Record{}, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	r := v.at(l.ID, now)
	if v.has(releaseIgnoresExpiry) {
		r = v.records[l.ID]
	}
	ours := r.Token == l.Token
	switch {
	case r.State == lambdaidem.Absent && v.has(releaseCreates):
		r.ID, r.Token, r.Attempt = l.ID, l.Token, 1
	case r.State == lambdaidem.InProgress && v.has(lateReleaseLost) && !r.LeaseLiveAt(now):
		return copied(r), lambdaidem.ErrLeaseLost
	case r.State == lambdaidem.InProgress && (ours || v.has(releaseUnfenced)):
	case r.State == lambdaidem.Released && ours && !v.has(repeatedReleaseLost):
		return copied(r), nil
	case r.State == lambdaidem.Completed && ours && v.has(releaseAfterCompletion):
		r.Result, r.CompletedAt = lambdaidem.Result{}, time.Time{}
	case r.State == lambdaidem.Completed && ours && v.has(releaseDeletesCompleted):
		delete(v.records, l.ID)
		return lambdaidem.Record{}, nil
	case v.has(lostReleaseAsSuccess):
		return copied(r), nil
	case v.has(refusalShowsExpired) && r.State == lambdaidem.Absent:
		return copied(v.records[l.ID]), lambdaidem.ErrLeaseLost
	default:
		return copied(r), lambdaidem.ErrLeaseLost
	}
	if v.has(releaseDeletes) {
		delete(v.records, l.ID)
		return lambdaidem.Record{}, nil
	}
	r.State = lambdaidem.Released
	if !v.has(releaseKeepsLockExpiry) {
		r.Expires = l.Expires
	}
	r.LastFailure = l.LastFailure
	if v.has(releaseDropsFingerprint) {
		r.Fingerprint = ""
	}
	if !v.has(releaseKeepsBound) {
		r.Bound = l.Bound
	}
	if v.has(releaseDropsToken) {
		r.Token = ""
	}
	if v.has(releaseDropsSteps) {
		r.Steps = nil
	}
	if v.has(releaseDropsInvocation) {
		r.Invocation = ""
	}
	if v.has(releaseDropsLastFailure) {
		r.LastFailure = ""
	}
	if v.has(releaseResetsAttempt) {
		r.Attempt = 0
	}
	return v.put(r), nil
}

func (v *variant) Hold(ctx context.Context, oldRec lambdaidem.Record, now time.Time) (lambdaidem.Record, error) {
	if err := v.ended(ctx, "hold"); err != nil {
		return lambdaidem.Record{}, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	r := v.at(oldRec.ID, now)
	if v.has(holdIgnoresExpiry) {
		r = v.records[oldRec.ID]
	}
	same := (r.State == lambdaidem.InProgress && oldRec.State == r.State || v.has(holdIgnoresState)) &&
		(r.Token == oldRec.Token || v.has(holdIgnoresToken)) && (r.LeaseEnd.Equal(oldRec.LeaseEnd) || v.has(holdIgnoresLeaseEnd))
	switch {
	case !same && v.has(holdOfChangedFails):
		return copied(r), lambdaidem.ErrLeaseLost
	case !same && v.has(holdShowsNoOther):
		return copied(oldRec), nil
	case !same, v.has(holdForgotten):
		return copied(r), nil
	case v.has(holdDropsFingerprint):
		r.Fingerprint = ""
	}
	r.Expires = time.Time{}
	if !v.has(holdKeepsLeaseEnd) {
		r.LeaseEnd = lambdaidem.HeldUntil(r)
	}
	return v.put(r), nil
}

func (v *variant) SaveSteps(ctx context.Context, l lambdaidem.Lease, steps lambdaidem.Steps, now time.Time) (lambdaidem.Record, error) {
	if err := v.ended(ctx, "save_steps"); err != nil {
		return lambdaidem.Record{}, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	r := v.at(l.ID, now)
	if v.has(saveIgnoresExpiry) && v.records[l.ID].State == lambdaidem.InProgress {
		r = v.records[l.ID]
	}
	ours := r.Token == l.Token
	switch {
	case r.State == lambdaidem.Absent && v.has(saveCreates):
		r = lambdaidem.Record{ID: l.ID, State: lambdaidem.InProgress, Token: l.Token, Attempt: 1, Expires: l.Expires}
	case r.State == lambdaidem.InProgress && v.has(lateSaveLost) && !r.LeaseLiveAt(now):
		return copied(r), lambdaidem.ErrLeaseLost
	case r.State == lambdaidem.InProgress && (ours || v.has(saveUnfenced)):
	case r.State == lambdaidem.Released && ours && v.has(saveAfterRelease):
	case r.State == lambdaidem.Completed && ours && v.has(saveAfterCompletion):
	case v.has(lostSaveAsSuccess):
		return copied(r), nil
	default:
		return copied(r), lambdaidem.ErrLeaseLost
	}
	switch same := maps.EqualFunc(r.Steps, steps, bytes.Equal); {
	case same && !v.has(repeatedSaveRefused):
		return copied(r), nil
	case len(r.Steps) >= len(steps) && !v.has(saveTakesAway):
		return lambdaidem.Record{}, &lambdaidem.StoreError{Op: "save_steps", Reason: lambdaidem.ReasonInvalid, NotApplied: true, Err: errors.New("it comes late")}
	}
	if v.has(saveOverwritesFingerprint) {
		r.Fingerprint = ""
	}
	if !v.has(stepsInputShared) {
		steps = copiedSteps(steps)
	}
	if v.has(stepsAsUTF8) {
		for name, result := range steps {
			steps[name] = bytes.ToValidUTF8(result, []byte("\uFFFD"))
		}
	}
	if v.has(stepsOfTheToken) {
		for id, other := range v.records {
			if other.Token == l.Token && id != r.ID && other.State == lambdaidem.InProgress {
				other.Steps = copiedSteps(steps)
				v.records[id] = other
			}
		}
	}
	r.Steps = steps
	if v.has(saveDropped) {
		return copied(r), nil
	}
	return v.put(r), nil
}

func (v *variant) Get(ctx context.Context, id string, now time.Time) (lambdaidem.Record, error) {
	if err := v.ended(ctx, "get"); err != nil {
		return lambdaidem.Record{}, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	r := v.at(id, now)
	if v.has(readShowsExpired) {
		r = v.records[v.key(id)]
	}
	if v.has(absentReadFails) && r.State == lambdaidem.Absent {
		return r, &lambdaidem.StoreError{Op: "get", NotApplied: true, Err: errors.New("not found")}
	}
	if v.has(readShared) {
		return r, nil
	}
	if v.has(stepsReadShared) {
		r.Result = copiedResult(r.Result)
		return r, nil
	}
	return copied(r), nil
}

// ended returns the error of a call whose context has ended, or nil if the context has not ended.
func (v *variant) ended(ctx context.Context, op string) error {
	if ctx.Err() == nil {
		return nil
	}
	e := &lambdaidem.StoreError{Op: op, Reason: lambdaidem.ReasonTimeout, NotApplied: true, Err: ctx.Err()}
	switch {
	case v.has(contextIgnoredByAcquire) && op == "acquire",
		v.has(contextIgnoredByComplete) && op == "complete",
		v.has(contextIgnoredByRelease) && op == "release",
		v.has(contextIgnoredByGet) && op == "get",
		v.has(contextIgnoredBySave) && op == "save_steps":
		return nil
	case v.has(contextErrorBare):
		return ctx.Err()
	case v.has(contextErrorUnknown):
		e.NotApplied = false
	case v.has(contextErrorMisnamed):
		e.Op = "put"
	}
	return e
}

// at returns the record with an id, or the zero Record if there is none or it has expired at the
// time now.
func (v *variant) at(id string, now time.Time) lambdaidem.Record {
	r := v.records[v.key(id)]
	if now.After(v.latest) {
		v.latest = now
	}
	if v.has(clockNeverBack) {
		now = v.latest
	}
	if v.isGone(r, now) {
		return lambdaidem.Record{}
	}
	return r
}

// isGone reports whether r has expired at the time now, like Record.GoneAt, unless the fault
// changes that.
func (v *variant) isGone(r lambdaidem.Record, now time.Time) bool {
	if r.State == lambdaidem.Absent {
		return true
	}
	live := r.State == lambdaidem.InProgress && r.LeaseEnd.UnixMilli() > now.UnixMilli()
	switch {
	case v.has(leaseComparedInSeconds):
		live = r.State == lambdaidem.InProgress && r.LeaseEnd.Unix() > now.Unix()
	case v.has(leaseOverTooLate):
		live = r.State == lambdaidem.InProgress && r.LeaseEnd.UnixMilli() >= now.UnixMilli()
	case v.has(expiredLiveLeaseGone):
		live = false
	case v.has(expiryNeedsDeadLeaseInAnyState):
		live = r.LeaseEnd.UnixMilli() > now.UnixMilli()
	}
	expired := r.Expires.Unix() <= now.Unix()
	switch {
	case v.has(expiryTooLate):
		expired = r.Expires.Unix() < now.Unix()
	case v.has(expiryTooEarly):
		expired = r.Expires.Unix() <= now.Add(time.Second).Unix()
	case v.has(neverExpires):
		expired = false
	case v.has(releasedNeverExpires):
		expired = expired && r.State != lambdaidem.Released
	case v.has(deadAttemptNeverExpires):
		expired = expired && r.State != lambdaidem.InProgress
	}
	if r.Expires.IsZero() && !v.has(zeroExpiryIsPast) {
		expired = false
	}
	return expired && !live
}

// key returns the key of the map under which the record with this id is stored.
func (v *variant) key(id string) string {
	if v.has(idsWithoutCase) {
		return strings.ToLower(id)
	}
	return id
}

func (v *variant) put(r lambdaidem.Record) lambdaidem.Record {
	if v.has(recordsNeverWritten) {
		return r
	}
	v.records[v.key(r.ID)] = r
	return copied(r)
}

func copied(r lambdaidem.Record) lambdaidem.Record {
	r.Result = copiedResult(r.Result)
	r.Steps = copiedSteps(r.Steps)
	return r
}

func copiedSteps(steps lambdaidem.Steps) lambdaidem.Steps {
	own := maps.Clone(steps)
	for name, result := range own {
		own[name] = bytes.Clone(result)
	}
	return own
}

func copiedResult(r lambdaidem.Result) lambdaidem.Result {
	r.Value = bytes.Clone(r.Value)
	if r.Failure != nil {
		f := *r.Failure
		r.Failure = &f
	}
	return r
}

// loader is a variant that keeps large answers outside their records.
type loader struct {
	*variant
	latest sync.Map // by record id
}

func newLoader(f fault) *loader { return &loader{variant: newVariant(f)} }

// faultyStore returns a store with the fault f. If the fault concerns loading answers, the store is
// a Loader. If it concerns transactions, the store is a Transactor.
func faultyStore(f fault) lambdaidem.Store {
	switch {
	case loadCut <= f && f <= endedLoadIsForeign:
		return newLoader(f)
	case f == commitJudgesByItsEnd, f == commitHidesWhatExpired:
		return newTransactor(f)
	}
	return newVariant(f)
}

// transactor is a variant with transactions, which contain no writes besides the record.
type transactor struct{ *variant }

func newTransactor(f fault) *transactor { return &transactor{newVariant(f)} }

func (t *transactor) Begin(io.Reader) lambdaidem.Tx { return transaction{t} }

type transaction struct{ store *transactor }

func (transaction) Seal(lambdaidem.Outcome) bool { return false }
func (transaction) Writes() int                  { return 0 }
func (transaction) Refuse(error)                 {}

func (t transaction) Commit(ctx context.Context, c *lambdaidem.Completion) (lambdaidem.Record, error) {
	claim := *c.Claim
	if t.store.has(commitJudgesByItsEnd) {
		claim.Now = c.Result.At
	}
	rec, err := t.store.Acquire(ctx, claim)
	switch {
	case err == nil && rec.State == lambdaidem.InProgress && rec.Token == claim.Token:
		return t.store.Complete(ctx, c.Lease, c.Result)
	case t.store.has(commitHidesWhatExpired) && rec.GoneAt(c.Result.At):
		rec = lambdaidem.Record{}
	}
	return rec, errors.Join(err, lambdaidem.ErrLeaseLost)
}

func (l *loader) apart(r lambdaidem.Record, err error) (lambdaidem.Record, error) {
	if len(r.Result.Value) > 100<<10 {
		r.Result.Apart, r.Result.Value = string(r.Result.Value), nil
	}
	return r, err
}

func (l *loader) Acquire(ctx context.Context, c lambdaidem.Claim) (lambdaidem.Record, error) {
	return l.apart(l.variant.Acquire(ctx, c))
}

func (l *loader) Complete(ctx context.Context, lease lambdaidem.Lease, r lambdaidem.Result) (lambdaidem.Record, error) {
	l.latest.Store(lease.ID, string(r.Value))
	return l.apart(l.variant.Complete(ctx, lease, r))
}

func (l *loader) Get(ctx context.Context, id string, now time.Time) (lambdaidem.Record, error) {
	return l.apart(l.variant.Get(ctx, id, now))
}

func (l *loader) Load(ctx context.Context, r lambdaidem.Record) (lambdaidem.Result, error) {
	if err := l.ended(ctx, "load"); err != nil && !l.has(loadIgnoresContext) {
		if e := (*lambdaidem.StoreError)(nil); l.has(endedLoadIsForeign) && errors.As(err, &e) {
			e.Reason = lambdaidem.ReasonForeign
		}
		return lambdaidem.Result{}, err
	}
	value, _ := r.Result.Apart.(string)
	if l.has(loadCut) {
		value = value[:len(value)-1]
	}
	if l.has(loadOfTheLatest) {
		latest, _ := l.latest.Load(r.ID)
		value, _ = latest.(string)
	}
	r.Result.Value, r.Result.Apart = []byte(value), nil
	return r.Result, nil
}
