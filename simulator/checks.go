package simulator

import "fmt"

// Check is the name of a check, which finds runs that break a rule.
type Check string

// The checks.
const (
	CheckCompletedNeverChanges Check = "completed never changes"
	CheckLeaseBeforeLock       Check = "lease before lock"
	CheckFenced                Check = "fenced"
	CheckAttemptRaised         Check = "attempt raised"
	CheckLeaseOutlives         Check = "lease outlives"
	CheckExpiry                Check = "expiry"
	CheckOwnRecord             Check = "own record"
	CheckLockFirst             Check = "lock first"
	CheckReplay                Check = "replay"
	CheckOwnAnswer             Check = "own answer"
	CheckFirstAnswer           Check = "first answer"
	CheckStoredEndings         Check = "stored endings"
	CheckPanicGoesOn           Check = "panic goes on"
	CheckOneAtATime            Check = "one at a time"
	CheckOneRun                Check = "one run"
	CheckRecognised            Check = "recognised"
	CheckMismatch              Check = "mismatch"
	CheckWithdrawn             Check = "withdrawn"
	CheckExpired               Check = "expired"
	CheckHeld                  Check = "held"
	CheckUnstuck               Check = "unstuck"
	CheckInTime                Check = "in time"
	CheckEffectKept            Check = "effect kept"
	CheckCleanUp               Check = "clean-up"
	CheckConflictIsBusy        Check = "conflict is busy"
	CheckUnknownReleased       Check = "unknown released"
	CheckOneEffect             Check = "one effect"
	CheckTogether              Check = "together"
	CheckUnguarded             Check = "unguarded"
	CheckBalance               Check = "balance"
	CheckRefused               Check = "refused"
	CheckCreated               Check = "created"
	CheckSameBytes             Check = "same bytes"
	CheckRecordFirst           Check = "record first"
	CheckConsulted             Check = "consulted"
	CheckNoLease               Check = "no lease"
	CheckStepOnce              Check = "step once"
	CheckOwnStep               Check = "own step"
	CheckStepsKept             Check = "steps kept"
	CheckStepsDropped          Check = "steps dropped"
	CheckDownstreamKey         Check = "downstream key"
	CheckOneCharge             Check = "one charge"
	CheckChargeOnce            Check = "charge once"
	CheckWhole                 Check = "whole"
	CheckPartOutlives          Check = "part outlives"
	CheckAsShown               Check = "as shown"
	CheckOperatorWaits         Check = "operator waits"
	CheckOperatorTold          Check = "operator told"
	CheckOperationKept         Check = "operation kept"
	CheckPurgeSpares           Check = "purge spares"
	CheckLeaseShard            Check = "lease shard"
	CheckLinearizable          Check = "linearizable"
	CheckHarness               Check = "harness"
)

// Checks has the rule that each check tests.
var Checks = map[Check]string{
	CheckCompletedNeverChanges: "G3: a completed record never changes before it expires",
	CheckLeaseBeforeLock:       "L2, L6: nothing is written over a lease that is live by the clock of the world",
	CheckFenced:                "L3: only the attempt whose token stands there completes or releases",
	CheckAttemptRaised:         "L6: every takeover raises the attempt number",
	CheckLeaseOutlives:         "L5: a lease ends no earlier than its attempt's deadline, and MaxSkew",
	CheckExpiry:                "L6, L7: what is in progress expires no earlier than its lease ends, and MaxSkew, and 1 s; under policy hold never",
	CheckOwnRecord:             "F1, F2: nobody writes to another's record",
	CheckLockFirst:             "L2: a record begins with a lock",
	CheckReplay:                "R1, G3: every replay equals the answer that the record stored",
	CheckOwnAnswer:             "G3: nobody's answer comes from another's record, or from another payload",
	CheckFirstAnswer:           "X6: an attempt's own answer is sent only if it is the record's",
	CheckStoredEndings:         "X1, X2: an attempt stores, releases or leaves its record as the outcome rule says of its ending",
	CheckPanicGoesOn:           "X2: a panic of the handler reaches the caller",
	CheckOneAtATime:            "G3: at most one attempt runs at a time",
	CheckOneRun:                "X2: the guard runs the handler once in an invocation",
	CheckRecognised:            "L4: an attempt knows its own lease and its own completion, though the reply was lost",
	CheckMismatch:              "F3, F4: nobody is told of another payload who asks with the one that the record is of, whatever version made its fingerprint",
	CheckWithdrawn:             "X10: a process withdraws the claims that it left behind without an effect of their handlers, and no others",
	CheckExpired:               "L7: nothing replays that has expired",
	CheckHeld:                  "G2, L6, X2: nothing runs again after an uncertain end if the attempt that died or the reader is under policy hold",
	CheckUnstuck:               "L6: no record is stuck beyond its lease, unless the attempt that died or the reader is under policy hold",
	CheckInTime:                "L5, L8, X4, X5: every answer leaves before the invocation's deadline",
	CheckEffectKept:            "X4: an attempt that met no fault records the effect that it had",
	CheckCleanUp:               "X2, X3: a process that lives releases what it must, however its request ended",
	CheckConflictIsBusy:        "X9: a transaction conflict never fails open",
	CheckUnknownReleased:       "X5: an acquire that may have landed is released before the answer goes out",
	CheckOneEffect:             "G1: what a handler enlists happens once for each record",
	CheckTogether:              "E1: what a handler enlists and the completion of its record are one transaction",
	CheckUnguarded:             "E1: what runs unguarded has the effects that its answer says, once",
	CheckBalance:               "E1: a transaction happens as a whole: no money comes or goes",
	CheckRefused:               "E1, E2: an attempt that was refused, failed or gave up has no enlisted effect",
	CheckCreated:               "G1, E4: what an answer says was done, was done",
	CheckSameBytes:             "E1: a transaction's token never comes with other bytes",
	CheckRecordFirst:           "E2: a handler's author is asked about a failed condition of his alone, and only if the record was as it should be",
	CheckConsulted:             "E4: nothing of an optimistic handler's leaves before its record was asked",
	CheckNoLease:               "E4: an attempt without a lease has no number, and is never under policy hold",
	CheckStepOnce:              "E5: a stored step never runs again for its record",
	CheckOwnStep:               "E5: a step returns what its own record stored of it",
	CheckStepsKept:             "L1, E5: steps outlive releases and takeovers, and none is taken away before the completion",
	CheckStepsDropped:          "E5: a completed record has no steps",
	CheckDownstreamKey:         "E6: a record and a step have one downstream key, and no two payloads run under it",
	CheckOneCharge:             "E6: no two payloads are charged by inner calls of one record",
	CheckChargeOnce:            "G3: an inner call that is done never runs again",
	CheckWhole:                 "R3: a completed record has all of its answer, of its own attempt, and nobody sees half of one",
	CheckPartOutlives:          "R3: a part expires no earlier than an hour after its record",
	CheckAsShown:               "O2: an operator changes a record only as it was shown, and replaces its token",
	CheckOperatorWaits:         "O2: no operator ends a lease that is live",
	CheckOperatorTold:          "O2, X8: an operator is told what became of it: of two one wins, and the other knows",
	CheckOperationKept:         "O2, L7, F5: a record keeps who did what to it, and its fingerprint; it lasts a TTL from then",
	CheckPurgeSpares:           "O2: a purge touches nothing that is in progress, and takes away no more than it says",
	CheckLeaseShard:            "O2: with the index of leases a record has its shard exactly while it is in progress, whichever version wrote before",
	CheckLinearizable:          "G3: the clients' view fits one order of runs and replays",
	CheckHarness:               "the simulator itself",
}

// Violation is a broken rule.
type Violation struct {
	Check Check
	What  string
	Key   string // the record that the rule was broken for; empty: none
}

// judge checks a journal against the rules. Some checks must look at the moment when something
// happens. The journal calls these under w.mu, before it records what happened (begin, event,
// write) or after (answered). The other checks read the journal when the run is over.
type judge struct {
	b     *journal
	wrong []Violation
}

// broken records that a rule was broken by an actor, or by none if a is nil.
func (j *judge) broken(a *actor, check Check, format string, args ...any) {
	j.b.w.mu.Lock()
	defer j.b.w.mu.Unlock()
	j.brokenLocked(a, check, format, args...)
}

func (j *judge) brokenLocked(a *actor, check Check, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	v := Violation{Check: check, What: what}
	if a != nil {
		v.Key = a.order.record()
	}
	j.wrong = append(j.wrong, v)
	j.b.addLocked(entry{kind: kindBroken, actor: a, check: check, text: what})
}

// brokenRecord records that a rule about a record was broken, by no particular actor.
func (j *judge) brokenRecord(h *history, check Check, format string, args ...any) {
	j.b.w.mu.Lock()
	defer j.b.w.mu.Unlock()
	j.brokenLocked(nil, check, format, args...)
	j.wrong[len(j.wrong)-1].Key = h.order.record()
}

// conclude runs the checks that read the whole journal, when the run is over.
func (j *judge) conclude() {
	for _, ans := range j.b.answers {
		j.checkAnswer(ans)
	}
	for _, h := range j.b.sorted() {
		j.checkRuns(h)
	}
	j.checkEffects()
	j.checkOperators()
	j.checkLinearizable()
}
