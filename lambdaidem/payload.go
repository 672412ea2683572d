package lambdaidem

import "strings"

// Whether a record's payload and a call's are the same. A deployment between two attempts
// may change how fingerprints are made (a secret is rotated, a field is ignored, a type
// grows), so two different fingerprints do not prove two different payloads.

// compare reports whether a recorded fingerprint is of this call's payload. If it
// is not, sure reports whether it surely is of another payload: it was made under
// settings that this guard has too. If it is, sure reports whether it was made
// under such settings.
func (c *call) compare(recorded string) (same, sure bool) {
	settings, digest, _ := strings.Cut(recorded, ".")
	if same, sure = matches(c.fingerprint, settings, digest); same || c.others == nil {
		return same, sure
	}
	for _, other := range c.others() {
		is, known := matches(other, settings, digest)
		if is {
			return true, known
		}
		sure = sure || known
	}
	return false, sure
}

func matches(fingerprint, settings, digest string) (same, sure bool) {
	ownSettings, ownDigest, _ := strings.Cut(fingerprint, ".")
	return ownDigest == digest, ownSettings == settings
}

// fits reports whether a recorded fingerprint is of this call's payload.
func (c *call) fits(recorded string) bool {
	same, _ := c.compare(recorded)
	return same
}

// refusedBy reports whether a released record without steps refuses this call's payload.
// It does if it is bound to its payload and this one surely is another: an attempt gave
// the service behind it a downstream key, or died, and so may have had an effect.
func (c *call) refusedBy(rec Record) bool {
	same, sure := c.compare(rec.Fingerprint)
	return rec.Bound != "" && !same && sure
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
	if _, sure := c.compare(rec.Fingerprint); sure || rec.State == Released && rec.Bound == "" {
		return c.fingerprint
	}
	return doubtful(c.fingerprint)
}
