package lambdaidem

import (
	"slices"
	"strings"
)

// Whether two payloads under one key are the same, and which of them a downstream
// key belongs to. A deployment between two attempts may change how fingerprints
// are made (a secret is rotated, a field ignored, a type grows), so two different
// fingerprints do not prove two different payloads. Only a payload that surely is
// another one gets another downstream key: if one payload had two keys, the
// service behind them would carry it out twice.

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

// settingsUnknown stands for the settings in a fingerprint whose payload could not
// be compared with an earlier one under the same downstream key. From then on no
// payload is surely another one than that.
const settingsUnknown = "?"

func doubtful(fingerprint string) string {
	_, digest, _ := strings.Cut(fingerprint, ".")
	return settingsUnknown + "." + digest
}

// maxPayloads is how many different payloads a record tells apart.
const maxPayloads = 8

// recordedOver returns the fingerprint and the payloads of a record once this call
// has claimed it. A payload that surely is none of the recorded ones is added. One
// that may be one of them takes its place and its downstream keys.
//
// The fingerprint is made anew, by the secret that signs now: otherwise a record
// that is retried for long would outlive a rotation under the old secret, and no
// longer fit once that is removed.
func (c *call) recordedOver(rec Record) (fingerprint string, payloads []string) {
	payloads = slices.Clone(rec.Payloads)
	if len(payloads) == 0 {
		payloads = []string{rec.Fingerprint}
	}
	at, sure := c.find(payloads, rec.payload())
	switch {
	case at >= 0:
	case len(payloads) < maxPayloads:
		return c.fingerprint, append(payloads, c.fingerprint)
	default: // the last one stands for all further ones
		at, sure = len(payloads)-1, false
	}
	fingerprint = c.fingerprint
	if !sure {
		fingerprint = doubtful(fingerprint)
	}
	if payloads[at] = fingerprint; len(payloads) == 1 {
		return fingerprint, nil
	}
	return fingerprint, payloads
}

// find returns which of the recorded payloads is this call's, and whether that is
// sure. Of several that it may be, the current one comes first, then the latest. It
// returns -1 if this call's payload surely is none of them.
func (c *call) find(payloads []string, current int) (at int, sure bool) {
	at = -1
	for i, recorded := range payloads {
		switch same, sure := c.compare(recorded); {
		case same:
			return i, sure
		case !sure && at != current:
			at = i
		}
	}
	return at, false
}

// payload returns which of the record's payloads is the current one: 0 for the
// first.
func (r Record) payload() int { return max(0, slices.Index(r.Payloads, r.Fingerprint)) }
