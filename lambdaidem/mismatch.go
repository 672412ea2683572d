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

// mayReplace reports whether the call may claim rec, a released record without steps, although
// the call's payload may differ from the record's. It may if Record.Bound is empty.
//
// With BoundByDownstreamKey, it may unless the payloads are known to differ. If the payload
// did change, the service that receives the downstream key refuses the request: it gets the
// same key as before. With any other Bound, nothing detects a change. For example, a guarded
// call inside the handler may have a key that depends on the payload.
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

// settingsUnknown replaces the SETTINGS part of a fingerprint, which has the form
// SETTINGS.DIGEST. It is for a record that was claimed with a payload that could not be
// compared with the record's. No real settings equal settingsUnknown, so from then on a
// different digest never proves a different payload.
const settingsUnknown = "?"

// withUnknownSettings returns the fingerprint with settingsUnknown in place of its settings.
func withUnknownSettings(fingerprint string) string {
	_, digest, _ := strings.Cut(fingerprint, ".")
	return settingsUnknown + "." + digest
}

// fingerprintOver returns the fingerprint that rec gets when this call claims it: that of the
// call's payload, made with the first secret. If the record kept its old fingerprint, no call
// would match the record any more once the secret of that fingerprint is removed from the
// options.
//
// If the payload of this call, or of an earlier claim, could not be compared with the
// record's, the new fingerprint has settingsUnknown. That is not needed if the record accepts
// any payload.
func (c *call) fingerprintOver(rec Record) string {
	forgotten := rec.State == Released && rec.Bound == "" // the record accepts any payload
	inDoubt := c.comparePayload(rec.Fingerprint) == maybeSamePayload || strings.HasPrefix(rec.Fingerprint, settingsUnknown)
	if inDoubt && !forgotten {
		return withUnknownSettings(c.fingerprint)
	}
	return c.fingerprint
}
