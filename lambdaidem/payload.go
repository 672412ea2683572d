package lambdaidem

import (
	"errors"
	"strings"
)

// This file decides whether a call has the payload of its record. A deployment between two
// attempts may change how fingerprints are made: a secret is rotated, a field is ignored, a
// type gains a field. So two different fingerprints do not prove two different payloads. A
// call whose payload can't be compared is refused, too; see payloadUnsure.

// likeness is what two fingerprints say about their payloads.
type likeness int

const (
	samePayload    likeness = iota // the digests are equal
	anotherPayload                 // the digests differ, and were made under the same settings
	maybeSame                      // the digests differ, and were made under different settings
)

// compare compares a recorded fingerprint with this call's payload, by all secrets of the
// guard.
func (c *call) compare(recorded string) likeness {
	best := like(c.fingerprint, recorded)
	if best == samePayload || c.others == nil {
		return best
	}
	for _, other := range c.others() {
		switch like(other, recorded) {
		case samePayload:
			return samePayload
		case anotherPayload:
			best = anotherPayload
		case maybeSame:
		}
	}
	return best
}

func like(fingerprint, recorded string) likeness {
	ownSettings, ownDigest, _ := strings.Cut(fingerprint, ".")
	settings, digest, _ := strings.Cut(recorded, ".")
	switch {
	case ownDigest == digest:
		return samePayload
	case ownSettings == settings:
		return anotherPayload
	default:
		return maybeSame
	}
}

// mayReplace reports whether the call may claim a released record without steps although its
// payload is not the record's. It may if the record is not bound to its payload.
//
// A record that is bound by a downstream key also accepts a payload that can't be compared.
// The service behind that key gets the same key again, and refuses a payload that has
// changed. Nothing refuses it for a record that is bound otherwise: an inner call, for
// example, may have a key that depends on the payload.
func (c *call) mayReplace(rec Record) bool {
	switch rec.Bound {
	case "":
		return true
	case BoundByDownstreamKey:
		return c.compare(rec.Fingerprint) != anotherPayload
	default:
		return false
	}
}

// errOtherSettings is why a payload can't be compared, for events.
var errOtherSettings = errors.New("the record's fingerprint was made under other options or secrets, or by another version of the payload's type: see docs/operate.md, \"Something changes in a deployment\"")

// settingsUnknown replaces the settings in the fingerprint of a record that was claimed with a
// payload that could not be compared. From then on, no other payload can be compared with
// the record's either.
const settingsUnknown = "?"

func doubtful(fingerprint string) string {
	_, digest, _ := strings.Cut(fingerprint, ".")
	return settingsUnknown + "." + digest
}

// fingerprintOver returns the fingerprint that rec gets when this call claims it. It is made
// with the current secret. Otherwise a record that is retried for a long time would keep a
// fingerprint made with an old secret, and no call would match once that secret is removed.
func (c *call) fingerprintOver(rec Record) string {
	forgotten := rec.State == Released && rec.Bound == ""
	inDoubt := c.compare(rec.Fingerprint) == maybeSame || strings.HasPrefix(rec.Fingerprint, settingsUnknown)
	if inDoubt && !forgotten {
		return doubtful(c.fingerprint)
	}
	return c.fingerprint
}
