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

// payloadMatch says whether two fingerprints were made from the same payload.
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

// compareFingerprints compares the fingerprint of a call with recorded, the fingerprint of a
// record. Both have the form SETTINGS.DIGEST. DIGEST is the digest of the payload. SETTINGS is a
// digest of what else determines DIGEST: the options, the secret and payload.form. If the DIGESTs
// are equal, the payloads are the same. If only the DIGESTs differ, the payloads differ. If DIGEST
// and SETTINGS both differ, the payloads can't be compared.
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
// record's payload may differ from the call's. rec.Bound says why rec refuses another payload. It
// is empty if rec accepts any payload.
func (c *call) mayReplace(rec Record) bool {
	switch rec.Bound {
	case "":
		// No attempt for this record has had an effect, so a client may correct its request.
		return true
	case BoundByDownstreamKey:
		// The earlier attempt has had no effect but calls to other services with the keys that
		// DownstreamKey returned. A new attempt sends the same keys, so these services don't repeat
		// an effect, and refuse a changed payload. So allow a payload that can't be compared.
		return c.comparePayload(rec.Fingerprint) != anotherPayload
	default:
		// Require the same payload. With another payload, the handler could make its inner call
		// with another key, and so repeat the call's effect.
		return false
	}
}

// errOtherSettings says, in the events that Options.Observer receives, why a call's payload can't
// be compared with that of the record.
var errOtherSettings = errors.New("the record's fingerprint was made under other options or secrets, or by another version of the payload's type: see docs/operate.md, \"Something changes in a deployment\"")

// errAnswerReplaced says in events why a call was refused after its handler had run: an answer to
// the call may have expired during the run, and a later attempt with another payload has the record
// now.
var errAnswerReplaced = errors.New("a later attempt with another payload has the record now, and may have replaced an answer to this request: that answer may have expired while the handler ran")

// errMismatchAfterRun says in events that a call was refused after its handler had run.
var errMismatchAfterRun = errors.New("the handler has run without a lease, or has lost it, and may have called other services; its answer is not stored, and its enlisted writes were not made: see docs/operate.md, \"A client gets 422\"")

// settingsUnknown replaces the SETTINGS of a fingerprint, which has the form SETTINGS.DIGEST. A
// call stores such a fingerprint if it claims a record whose payload it can't compare with its own.
//
// A later call with another DIGEST may have the payload for which the record was created. The guard
// must therefore not say that the payload has changed. It says so only if the stored SETTINGS equal
// the SETTINGS that the later call computes, and these are never "?".
const settingsUnknown = "?"

// withUnknownSettings returns the parameter fingerprint, which has the form SETTINGS.DIGEST, with
// settingsUnknown in place of SETTINGS.
func withUnknownSettings(fingerprint string) string {
	_, digest, _ := strings.Cut(fingerprint, ".")
	return settingsUnknown + "." + digest
}

// fingerprintOver returns the fingerprint to store in rec when this call claims rec. It is the
// fingerprint of the call's payload, made with the first secret, because an older secret may soon
// be removed from the options.
//
// If the record may have been created for another payload, settingsUnknown replaces SETTINGS in the
// fingerprint, so that the guard never says that a later call's payload has changed.
func (c *call) fingerprintOver(rec Record) string {
	forgotten := rec.State == Released && rec.Bound == "" // the record accepts any payload
	inDoubt := c.comparePayload(rec.Fingerprint) == maybeSamePayload || strings.HasPrefix(rec.Fingerprint, settingsUnknown)
	if inDoubt && !forgotten {
		return withUnknownSettings(c.fingerprint)
	}
	return c.fingerprint
}
