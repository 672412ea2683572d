package lambdaidem

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// attempt carries out the protocol for one guarded call: it acquires the record, runs the
// handler and finishes the record. Only its methods decide what a record means and what
// follows from it. Each attempt has its own state, because one process may serve several
// invocations at once.
type attempt struct {
	budget
	g          *Guard
	outer      *attempt // the attempt, or the unguarded run, whose handler made this call; nil if there is none
	call       call
	work       work
	id         string   // id of the record
	scope      string   // Claim.Scope
	token      string   // fencing token: random, used by this attempt only
	random     [16]byte // the random bytes that token encodes
	invocation string   // Claim.Invocation
	steps      steps

	clockStart time.Time     // when the attempt began, by Options.Clock
	number     int           // Record.Attempt; 0 until the record is known
	inHandler  time.Duration // time spent in the handler
	inStore    time.Duration // time spent in the store, except for storing steps

	// How the record was acquired.
	mayHoldLease  bool    // the reply to a claim is missing, so this attempt may hold the lease
	lastClaimOver *Record // the record that the last claim replaces; nil if the claim creates a record
	failedOpen    bool    // the handler runs without a lease because of Options.FailOpen
	openedBy      error   // the error because of which failedOpen is set; otherwise nil
	needsLease    bool    // the handler must not run without a lease, even with Options.FailOpen, because of the record that lookUp has read or of a conflict
	cached        bool    // the record is from the process's cache
	entry         *cacheEntry

	// What the handler has done.
	started       bool         // the handler has been started
	enlist        enlisting    // the writes that the handler enlists
	inner         innerCalls   // the guarded calls that the handler makes
	callsBegun    atomic.Int64 // how many guarded calls have begun inside the handler; only the outermost attempt counts
	askedForKey   atomic.Bool  // the handler has called DownstreamKey
	anotherMayRun bool         // this attempt has failed without releasing the record, and another attempt may carry out the call
	leftEffects   bool         // the result of mayHaveLeftEffects, once the call's answer depends on the record of another attempt

	// How the record is completed.
	txRejected      bool       // the database has rejected the transaction with the handler's writes
	txMayCommit     bool       // an earlier request of the rejected transaction may still commit, until the record changes
	failedClaims    int        // number of completions that failed because another attempt had taken the record
	lastResultAt    time.Time  // Result.At of the last result; see isResult
	lastResultMade  time.Time  // when that result was made, before the request that stores it
	firstCompletion Completion // the last completion that the method completion made, without a claim
	storedByTx      bool       // a transaction has stored the answer

	// innerEnding tells the attempt of the outer guarded handler how this call ended:
	//
	//   - OutcomeSucceeded or OutcomeFailed: this call ended with that outcome.
	//   - OutcomeReleased: a retry may still carry out this call.
	//   - OutcomeUncertain: nobody knows whether this call had an effect.
	//   - "": this call does not affect the outer attempt's record.
	innerEnding Outcome

	fingerprint string // Record.Fingerprint of the acquired record, or as the last completion with a claim sets it; before both, the fingerprint of the call
	bound       string // Claim.Bound of the last claim
}

func (g *Guard) newAttempt(ctx context.Context, c call) *attempt {
	outer := runOf(ctx)
	a := &attempt{g: g, outer: outer, call: c, id: c.id, scope: c.identity.scope(g.readable(&c.identity)), budget: newBudget(ctx, outer, &g.opts),
		clockStart: g.opts.Clock(), fingerprint: c.fingerprint, invocation: invocationOf(ctx)}
	if _, err := io.ReadFull(g.opts.Random, a.random[:]); err != nil {
		panic(fmt.Sprintf("lambdaidem: Options.Random: %v", err)) // without randomness there is no fencing
	}
	a.token = base64.RawURLEncoding.EncodeToString(a.random[:])
	return a
}

// addStoreTime adds the time since start, when a request to the store began, to a.inStore, which
// events report. Don't call addStoreTime for a request that stores a step: its time counts as part
// of the handler's.
func (a *attempt) addStoreTime(start time.Time) { a.inStore += time.Since(start) }
