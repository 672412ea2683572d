package lambdaidem

import (
	"errors"
	"strings"
)

// This file decides whether a call has the same payload as its record. A deployment between
// two attempts may change how fingerprints are made: a secret is rotated, a field is
// ignored, or a type gets a new field. Two different fingerprints therefore don't prove that
// the payloads differ. If the payloads can't be compared, the guard refuses the call too,
// unless mayReplace allows it. The client then gets the text of payloadUnsure, which does not
// tell the client to use a new key.

// payloadMatch is the result of comparing the payloads of two fingerprints.
type payloadMatch int

const (
	samePayload      payloadMatch = iota // the digests are equal
	anotherPayload                       // the digests differ although they were made under the same settings
	maybeSamePayload                     // can't be compared: the digests differ, but so do the settings under which they were made
)

// comparePayload compares the payload of this call with the payload of a record, whose
// fingerprint is recorded. It makes fingerprints of the call's payload with every secret
// of the guard, because the record's may have been made with any of them.
func (c *call) comparePayload(recorded string) payloadMatch {
	best := compareFingerprints(c.fingerprint, recorded)
	if best == samePayload || c.others == nil {
		return best
	}
	for _, other := range c.others() {
		switch compareFingerprints(other, recorded) {
		case samePayload:
			return samePayload
		case anotherPayload:
			best = anotherPayload
		case maybeSamePayload:
		}
	}
	return best
}

// compareFingerprints compares two fingerprints, which have the form SETTINGS.DIGEST.
func compareFingerprints(fingerprint, recorded string) payloadMatch {
	ownSettings, ownDigest, _ := strings.Cut(fingerprint, ".")
	settings, digest, _ := strings.Cut(recorded, ".")
	switch {
	case ownDigest == digest:
		return samePayload
	case ownSettings == settings:
		return anotherPayload
	default:
		return maybeSamePayload
	}
}

// mayReplace reports whether the call may claim rec, a released record without steps,
// although the call's payload may differ from the record's. Record.Bound decides:
//
//   - If Bound is empty, the call may claim the record, so that a client can correct its
//     request.
//   - With BoundByDownstreamKey, the call may claim the record unless the payloads are known
//     to differ. The handler sends the same downstream key as before to another service. If
//     the payload has changed after all, that service refuses the changed request.
//   - With any other Bound, the call may not claim the record, because nothing would detect
//     a changed payload. For example, a guarded call inside the handler may have a key that
//     depends on the payload.
func (c *call) mayReplace(rec Record) bool {
	switch rec.Bound {
	case "":
		return true
	case BoundByDownstreamKey:
		return c.comparePayload(rec.Fingerprint) != anotherPayload
	default:
		return false
	}
}

// errOtherSettings says in events why a payload can't be compared with the record's.
var errOtherSettings = errors.New("the record's fingerprint was made under other options or secrets, or by another version of the payload's type: see docs/operate.md, \"Something changes in a deployment\"")

// settingsUnknown replaces the SETTINGS in a record's fingerprint, which has the form
// SETTINGS.DIGEST. The guard uses it when a call claims a record although the payloads could
// not be compared. The DIGEST is then that of the call, but the record may have begun with
// another payload. No real settings equal settingsUnknown, so a later call with a different
// digest is not taken for a call with another payload: it may be a retry of the original
// request.
const settingsUnknown = "?"

// withUnknownSettings returns the fingerprint with settingsUnknown in place of its settings.
func withUnknownSettings(fingerprint string) string {
	_, digest, _ := strings.Cut(fingerprint, ".")
	return settingsUnknown + "." + digest
}

// fingerprintOver returns the new fingerprint of rec when this call claims rec. It is the
// fingerprint of the call's payload, made with the first secret. If the record kept its old
// fingerprint, no call would match the record once the old secret is removed from the
// options.
//
// The new fingerprint has settingsUnknown if the payload of this call could not be compared
// with the record's, or if that was so for an earlier claim. A record that accepts any
// payload does not need settingsUnknown.
func (c *call) fingerprintOver(rec Record) string {
	forgotten := rec.State == Released && rec.Bound == "" // the record accepts any payload
	inDoubt := c.comparePayload(rec.Fingerprint) == maybeSamePayload || strings.HasPrefix(rec.Fingerprint, settingsUnknown)
	if inDoubt && !forgotten {
		return withUnknownSettings(c.fingerprint)
	}
	return c.fingerprint
}
