package powertools

import (
	"crypto/md5" //nolint:gosec // Powertools hashes with MD5 by default
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
)

// Language is the language of the function that stored the records. It decides how ids are
// made, and how answers are stored.
type Language string

// The languages of Powertools for AWS Lambda.
const (
	Python     Language = "Python"
	TypeScript Language = "TypeScript"
	Java       Language = "Java"
	DotNet     Language = ".NET"
)

// ErrNothingSelected is returned by [Language.ID] for data that Powertools treats as missing.
// Powertools does not store a record for such data, except that .NET stores one record for all
// of it. The data is missing if it is
//
//   - null, in every language;
//   - an empty string, in Python and .NET;
//   - in Python and Java, an object or array without elements, or one whose elements are all
//     null.
var ErrNothingSelected = errors.New("powertools: the selected data is missing; " +
	"check the selection, or return ErrNoRecord if the old function accepted such events")

// ID returns the id under which Powertools stores the record of the given data:
//
//	powertools.Python.ID("payments.app.handler", []byte(`{"order": 42}`))
//
// The prefix is the part of the id before "#"; see [New]. The data is JSON: what the JMESPath
// expression event_key_jmespath selects from the event, or the whole event without one. ID
// hashes with MD5, the default of Powertools. For another hash, set Options.Hash.
//
// ID returns an error if it can't reproduce the id that Powertools makes:
//
//   - The data is not valid JSON, or an object in it has two members of one name.
//   - The data is missing: [ErrNothingSelected].
//   - TypeScript: an object with a member name that has a non-ASCII capital letter. Powertools
//     sorts the members by their lower-case names, and versions of Unicode differ in these.
//   - Java: a number with a fraction or an exponent that is not zero, is not between 0.001
//     and 10,000,000, or has more than 15 digits. Versions of Java write some of these
//     numbers differently.
//
// In Java and .NET, the order of an object's members counts, and must be the one in which the
// old function wrote them. White space counts in .NET only. ID can't check this. It is not a
// problem if the data is a text or a number.
func (l Language) ID(prefix string, data json.RawMessage) (string, error) {
	return l.id(md5.New, prefix, data)
}

func (l Language) id(newHash func() hash.Hash, prefix string, data json.RawMessage) (string, error) {
	v, err := parse(data)
	if err != nil {
		return "", fmt.Errorf("powertools: the selected data: %w", err)
	}
	if l.missing(v) {
		return "", ErrNothingSelected
	}
	sum, err := l.hash(newHash, v)
	if err != nil {
		return "", fmt.Errorf("powertools: the selected data: %w", err)
	}
	return prefix + "#" + sum, nil
}

// validation returns the value that Powertools stores in the attribute "validation" for the
// given data.
func (l Language) validation(newHash func() hash.Hash, data json.RawMessage) (string, error) {
	v, err := parse(data)
	if err != nil {
		return "", fmt.Errorf("powertools: the data to validate: %w", err)
	}
	sum, err := l.hash(newHash, v)
	if err != nil {
		return "", fmt.Errorf("powertools: the data to validate: %w", err)
	}
	return sum, nil
}

// missing reports whether Powertools treats the data as a missing idempotency key.
func (l Language) missing(v *value) bool {
	switch {
	case v.kind == kindNull:
		return true
	case v.kind == kindString:
		return v.text == "" && (l == Python || l == DotNet)
	case v.isContainer() && (l == Python || l == Java):
		for _, element := range v.elements {
			if element.kind != kindNull {
				return false
			}
		}
		return true
	}
	return false
}

// hash returns the hash of the data as Powertools writes it.
func (l Language) hash(newHash func() hash.Hash, v *value) (string, error) {
	text, err := l.write(v)
	if err != nil {
		return "", err
	}
	h := newHash()
	h.Write(text)
	sum := h.Sum(nil)
	if l == TypeScript {
		return base64.StdEncoding.EncodeToString(sum), nil
	}
	// Java removes leading zeros and fills up to 32 digits. This differs from all digits only
	// for a longer hash than MD5 that begins with a zero digit.
	digits := hex.EncodeToString(sum)
	for l == Java && len(digits) > 32 && digits[0] == '0' {
		digits = digits[1:]
	}
	return digits, nil
}

// write returns the bytes that Powertools hashes for the data.
func (l Language) write(v *value) ([]byte, error) {
	switch l {
	case Python:
		return appendPython(nil, v), nil
	case TypeScript:
		return appendTypeScript(nil, v)
	case Java:
		if v.kind == kindString {
			return []byte(v.text), nil
		}
		return appendJava(nil, v)
	default: // DotNet
		return appendDotNet(nil, v), nil
	}
}
