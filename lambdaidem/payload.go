package lambdaidem

import "strings"

// Whether a record's payload and a call's are the same. A deployment between two attempts
// may change how fingerprints are made (a secret is rotated, a field is ignored, a type
// grows), so two different fingerprints do not prove two different payloads.

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

// refusedBy reports whether a released record without steps refuses this call's payload.
// It does if it is bound to its payload and this one surely is another: an attempt gave
// the service behind it a downstream key, or died, and so may have had an effect.
func (c *call) refusedBy(rec Record) bool {
	return rec.Bound != "" && c.compare(rec.Fingerprint) == anotherPayload
}

// settingsUnknown stands for the settings in the fingerprint of a payload that could not
// be compared with the one that the record is bound to. From then on no payload is surely
// another than that.
const settingsUnknown = "?"

func doubtful(fingerprint string) string {
	_, digest, _ := strings.Cut(fingerprint, ".")
	return settingsUnknown + "." + digest
}

// fingerprintOver returns the fingerprint of a record once this call has claimed it. It is
// made by the secret that signs now. Otherwise a record that is retried for long would keep
// a fingerprint by the old secret, and no longer fit once that is removed.
func (c *call) fingerprintOver(rec Record) string {
	forgotten := rec.State == Released && rec.Bound == ""
	inDoubt := c.compare(rec.Fingerprint) == maybeSame || strings.HasPrefix(rec.Fingerprint, settingsUnknown)
	if inDoubt && !forgotten {
		return doubtful(c.fingerprint)
	}
	return c.fingerprint
}
