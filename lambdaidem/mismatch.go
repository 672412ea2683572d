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

// comparePayload compares the payload of this call with the payload of a record. The
// parameter recorded is the record's fingerprint. Any secret of the guard may have made that
// fingerprint, so comparePayload makes a fingerprint of the call's payload with each secret.
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

// compareFingerprints compares fingerprint, that of a call, with the fingerprint of a record, which
// is the parameter recorded. Both have the form SETTINGS.DIGEST. The DIGEST is that of the payload.
// The SETTINGS are a digest of what decides how the DIGEST is made: the options, the secret and
// payload.form.
//
// Equal DIGESTs mean samePayload. Different DIGESTs mean anotherPayload if the SETTINGS are equal,
// and maybeSamePayload if the SETTINGS differ too.
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

// mayReplace reports whether the call may claim rec, a released record without steps, although the
// payload of the call may differ from that of the record. The result depends on rec.Bound, the
// reason why the record may have to refuse another payload:
//
//   - If Bound is empty, there is no such reason. mayReplace returns true, so that a client can
//     correct its request.
//   - With BoundByDownstreamKey, mayReplace returns false only if the payload is known to differ.
//     If the payloads can't be compared, the call may claim the record: the handler sends the same
//     downstream key as before to another service, and that service refuses a changed payload.
//   - With any other Bound, mayReplace returns false, because nothing else would detect a changed
//     payload. For example, the handler may make a guarded call whose key is derived from the
//     payload. With a changed payload, that call would get another key, and would repeat its
//     effect.
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

// errMismatchAfterRun says in events that a call was refused after its handler had run.
var errMismatchAfterRun = errors.New("the handler has run without a lease, or has lost it, and may have called other services; its answer is not stored, and its enlisted writes were not made: see docs/operate.md, \"A client gets 422\"")

// settingsUnknown replaces the SETTINGS in a record's fingerprint, which has the form
// SETTINGS.DIGEST; see compareFingerprints. The guard stores settingsUnknown when a call claims a
// record whose payload can't be compared with the call's payload. The stored DIGEST is then that of
// the call's payload, but the record may have been created for another payload.
//
// A client may repeat the request that created the record. The DIGEST of this retry may differ from
// the stored DIGEST, although the client did not change the payload. The guard must not tell this
// client that the payload has changed. The guard says so only if the SETTINGS are equal, and no
// real SETTINGS equal settingsUnknown.
const settingsUnknown = "?"

// withUnknownSettings returns the fingerprint with settingsUnknown in place of its settings.
func withUnknownSettings(fingerprint string) string {
	_, digest, _ := strings.Cut(fingerprint, ".")
	return settingsUnknown + "." + digest
}

// fingerprintOver returns the fingerprint to store in rec when this call claims rec. It is the
// fingerprint of the call's payload, made with the first secret. The record can't keep its old
// fingerprint, because that may have been made with an older secret. Once the older secret is
// removed from the options, no call would match the record.
//
// Sometimes nobody knows whether the record was created for the call's payload. That is so if the
// payloads can't be compared (see maybeSamePayload), or if the record's fingerprint already has
// settingsUnknown. The new fingerprint then has settingsUnknown too, so that no later call is told
// that its client has changed the payload.
//
// A released record with an empty Bound accepts any payload, so its new fingerprint never has
// settingsUnknown.
func (c *call) fingerprintOver(rec Record) string {
	forgotten := rec.State == Released && rec.Bound == "" // the record accepts any payload
	inDoubt := c.comparePayload(rec.Fingerprint) == maybeSamePayload || strings.HasPrefix(rec.Fingerprint, settingsUnknown)
	if inDoubt && !forgotten {
		return withUnknownSettings(c.fingerprint)
	}
	return c.fingerprint
}
