package window

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/localstack/rehearsal"
)

// outcome is what the window has observed of one HTTP request. The caption under the controls
// is derived from it, so that the caption never contradicts the diagram.
type outcome struct {
	lost       bool // the answer did not reach the client
	status     int
	code       string // of a problem document
	replayed   bool
	struck     string // the fault that struck; empty: none
	retryAfter string // the header, in seconds
	late       bool   // the network held up the request that stores the answer

	asked     rehearsal.AccessKind // the latest request to DynamoDB for the record; empty: there was none
	lockedBy  rehearsal.AccessKind // Lock or Takeover: how the attempt got the lock; empty: it has none
	left      string               // the status of a record that was taken over; empty: not known
	reused    string               // the results of steps that were in a record that was taken over; empty: none
	saved     string               // the results of steps that the record has since a step of this attempt; empty: none
	held      bool                 // policy hold: if the attempt dies, the record waits for an operator
	knows     bool                 // the attempt knows that it has the lock
	ownToken  bool                 // a refused lock showed the attempt that it has the lock
	ran       bool                 // the handler ran
	whole     bool                 // the answer was to be stored in a new record
	again     bool                 // the handler had run before, for the same record
	stored    bool                 // DynamoDB stored the attempt's answer
	effects   bool                 // DynamoDB wrote effects of the handler together with the answer
	repeated  bool                 // DynamoDB recognized a second write of the answer by its ClientRequestToken
	overtaken bool                 // DynamoDB refused the answer, because another attempt has the record
	released  bool                 // the attempt gave the lock back without an answer
	died      bool                 // the process ended, or was killed at its timeout, without an answer
	gaveUp    bool                 // the gateway answered, because the process had not answered in time
}

// has reports whether the response has this code of the guard.
func (o outcome) has(code lambdaidem.Code) bool { return o.code == string(code) }

// caption says what to look for in the rows of the request.
func (o outcome) caption() string {
	var text string
	switch {
	case o.died:
		text = o.deathCaption()
	case o.gaveUp:
		text = "The gateway has waited long enough for the function, and answers in its place. The process runs on, and this client does not get its answer."
	case o.replayed:
		text = o.replayCaption()
		if o.struck == faultLock {
			text += " The fault struck, but there was nothing left to lock: DynamoDB's first refusal was lost, so the process asked again."
		}
	case o.knows:
		text = o.lockCaption() + " " + o.endCaption()
	case o.lockedBy != "" && !o.ran:
		text = o.unheardCaption()
	case o.ran && o.whole:
		text = "The handler ran without a lock: the write of the answer is also the lock, and DynamoDB carries it out only if there is no record. " + o.endCaption()
	case o.ran:
		text = "The lock failed, and the guard lets the handler run all the same (FailOpen). Until its answer is stored, nothing keeps the same request from running it again. " + o.endCaption()
	default:
		text = o.refusalCaption()
	}
	if o.lost {
		text += " The client's connection broke, so the client knows nothing of this."
		if o.stored || o.replayed {
			text += " But the answer is in the record: repeat the request, and the client gets the stored answer without a second run of the handler."
		}
	}
	return text
}

// replayCaption says where a stored answer comes from.
func (o outcome) replayCaption() string {
	const same = "The stored answer is returned: the same as before, and the handler does not run again."
	switch {
	case o.ran:
		return "The handler ran, but another attempt has completed the record, so DynamoDB refused this attempt's answer and all its writes. The stored answer is returned."
	case o.asked == "":
		return "The process still has the record in its memory, so it does not ask DynamoDB. " + same
	case o.asked == rehearsal.Read:
		return "The record is read, and it is completed. " + same
	}
	return "The lock is refused, because the record is completed. " + same
}

func (o outcome) deathCaption() string {
	switch {
	case o.late && (o.overtaken || o.stored):
		return o.lockCaption() + " Then the process died, but the write that stores its answer was on its way. " + o.lateCaption()
	case o.stored:
		return "The process died after its answer was stored. Repeat the request: the client gets the stored answer, and the handler does not run again."
	case o.lockedBy == "":
		return "The process died before it changed a record, so the next request runs the handler."
	case !o.ran:
		return o.unheardCaption() + " Then the process died."
	}
	text := o.lockCaption() + " Then the process dies, so nothing of its answer is stored."
	if o.saved != "" {
		text += " But the record has " + o.saved + ": that is done, and no later attempt does it again."
	}
	text += " The record stays locked by a process that is dead. Repeat the request: until the lease is over, the client is told to come back later. "
	if o.held {
		return text + "After that, the record is held, because of policy hold: an operator decides what becomes of it."
	}
	return text + "After that, the next attempt takes the record over."
}

// lockCaption says how the attempt got the lock.
func (o outcome) lockCaption() string {
	switch {
	case o.ownToken:
		return "DynamoDB's reply to the lock was lost, so the process asked again and was refused. The record that DynamoDB sent along has the attempt's own token, " +
			"so the attempt knows that it has the lock. The handler runs."
	case o.lockedBy == rehearsal.Takeover:
		runs := "runs"
		if o.again {
			runs = "runs again"
		}
		why := map[string]string{
			inProgress: "an earlier attempt has left a record, and its lease is over",
			released:   "there is a record, which was released without an answer",
		}[o.left]
		text := "The lock is refused, because " + cmp.Or(why, "there is a record of an earlier attempt") + ". " +
			"So this attempt takes the record over with a new token, and the handler " + runs + ". The earlier attempt can't write anything any more."
		if o.reused != "" {
			text += " The record has " + o.reused + ", so the handler does not carry that out again."
		}
		return text
	}
	return "There was no record for this key. The request locks one, and the handler runs."
}

// unheardCaption says what becomes of a lock that the attempt has not heard of.
func (o outcome) unheardCaption() string {
	text := "DynamoDB locked the record, but no reply reached the process. It can't know whether it has the lock, so the handler does not run. "
	if o.released {
		return text + "The process gives the lock back, so the next request runs the handler at once."
	}
	return text + "The record stays locked until its lease is over."
}

// endCaption says how an attempt that had the lock ended.
func (o outcome) endCaption() string {
	switch {
	case o.late && (o.overtaken || o.stored):
		return o.lateCaption()
	case o.repeated:
		return "DynamoDB stored the answer, and its reply was lost, so the process sent the same write again. " +
			"DynamoDB recognized the ClientRequestToken of the first write and wrote nothing again: the effects happened once. " + recognizedFor
	case o.stored && o.struck == faultCompletion:
		return "DynamoDB stored the answer, and its reply was lost, so the process sent the same write again. The answer is stored once, and the client gets it."
	case o.stored && o.effects:
		return "Find the row in which the answer is stored, together with the handler's effects. Repeat the request: the client gets this answer again."
	case o.stored:
		return "Find the row in which the answer is stored. Repeat the request: the client gets this answer again."
	case o.overtaken && !o.knows:
		return "But another attempt has the record, so DynamoDB refused this attempt's answer."
	case o.overtaken:
		return "But another attempt took the record over in the meantime, so DynamoDB refused this attempt's answer and all its writes."
	case o.released:
		return "The handler gave no answer to keep, so the record is released: the next request runs the handler at once."
	}
	if o.status < http.StatusBadRequest {
		return "The answer could not be stored, and the client got it all the same: a repetition runs the handler again."
	}
	return "The answer could not be stored, so the client can't be told what happened: it must repeat the request."
}

// lateCaption says what became of an answer that the network held up.
func (o outcome) lateCaption() string {
	text := ""
	if o.has(lambdaidem.ErrOutcomeUnknown) {
		text = "The network lost its other tries too, so the client got a 503, which asks it to repeat the request. "
	}
	if o.overtaken {
		return text + "The network held the first try up until another attempt had the record. The late write has the token of the first attempt, " +
			"so DynamoDB refuses it with all its effects: a write of an attempt that has lost the record can't overwrite anything."
	}
	return text + "The network held the first try up until the lease was over. But nobody had taken the record over, so it still had the token of this attempt, " +
		"and DynamoDB carried the late write out: the answer is stored, and the handler's effects have happened, once. " +
		"The end of a lease takes nothing from an attempt; it only lets the next one take the record over. Repeat the request: the client gets the stored answer."
}

// recognizedFor says what protects a write when DynamoDB has forgotten it (Amazon DynamoDB API
// Reference, "TransactWriteItems", ClientRequestToken).
const recognizedFor = "DynamoDB recognizes a ClientRequestToken for 10 minutes. After that, the condition of the write would refuse it, because the record is completed."

// refusalCaption says why the handler did not run, if nothing was locked or replayed.
func (o outcome) refusalCaption() string {
	switch {
	case o.has(lambdaidem.ErrKeyMissing):
		return "The request has no idempotency key, so the guard refuses it (400). No record is locked, and no handler runs."
	case o.has(lambdaidem.ErrPayloadMismatch):
		return "The fingerprint in the record is that of the first body, so the second body is refused (422). No handler runs."
	case o.has(lambdaidem.ErrInProgress):
		return "The lock is refused, because another attempt has it. No handler runs, and the client is told to come back in " + o.retryAfter +
			" s: the other attempt can end at any moment. If that attempt has died, the client is told so until its lease is over."
	case o.has(lambdaidem.ErrAttemptAbandoned):
		return "An earlier attempt died, and its record is held: under policy hold, an operator must find out what the dead attempt did, and decide. " +
			"Until then nobody runs the handler. A request with policy rerun changes nothing, as the policy is in the record. See \"Decide as the operator\" among the controls."
	case o.has(lambdaidem.ErrStoreUnavailable):
		return "The table of records could not be used, so the guard can't know whether the request was carried out before. It refuses (503), and no handler runs."
	case o.status >= http.StatusBadRequest && strings.HasPrefix(o.code, "idempotency_"):
		return "The guard refused the request: " + o.code + ". No record is locked, and no handler runs."
	case o.status >= http.StatusBadRequest:
		return "The request was refused before the guard locked a record."
	}
	return "No record was locked, so nothing protects this request: its route has no guard, or its guard lets requests pass when the table fails."
}
