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

// ErrNothingSelected is the error of [Language.ID] for data that Powertools treats as missing.
// Often the caller has selected the wrong part of the event. Data is missing if it is
//
//   - null, in every language;
//   - an empty string, in Python and .NET;
//   - in Python and Java, an object or array without elements, or one whose elements are all null.
//
// If the selected part is right, recent versions of Powertools (those in docs/powertools.md) store
// no record for such data, except in .NET, where all events with such data share one record. Before
// version 3.35.0, Powertools for Python stored a record for an object whose members are all null,
// and before 2.17.0 for all missing data. Older versions for other languages may have stored
// records too.
//
// If the table has a record for the data, set Selection.ID to the record's id. Return [ErrNoRecord]
// instead of a Selection only if the table can't have one. The handler then runs: if there were a
// record after all, the handler would repeat what the old function has done.
var ErrNothingSelected = errors.New("powertools: the selected data is missing: check the selection. " +
	"If it is right, look for a record of such data in the table, because some versions of Powertools store one, and set Selection.ID to its id; " +
	"return ErrNoRecord only if the old function stored none")

// ID returns the id under which Powertools stores the record of the given data:
//
//	powertools.Python.ID("payments.app.handler", []byte(`{"order": 42}`))
//
// The prefix is the part of the id before "#"; see [New]. The data is JSON: the result of the
// JMESPath expression event_key_jmespath, or the whole event if the old function, which used
// Powertools, had no such expression. ID hashes with MD5, the default of Powertools. For
// another hash function, use [New] with Options.Hash.
//
// ID returns an error if it can't reproduce the id that Powertools makes:
//
//   - The data is not valid JSON, has invalid UTF-8 or an unpaired surrogate, or has an object with
//     two members of the same name.
//   - The data is missing: [ErrNothingSelected].
//   - TypeScript: the name of a member has a capital letter outside ASCII.
//   - Java: a number with a fraction or an exponent has an absolute value below 0.001 or of at
//     least 10,000,000, or needs more than 15 digits. A number that is zero is accepted.
//
// ID can't check whether the data is written as the old function wrote it. In Java and .NET, the
// members of an object must be in the same order. In .NET, white space and escapes in an object or
// array, and the digits of a number, must be the same too.
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

// hash returns the hash that Powertools computes for the data v, encoded as text: in base64 for
// TypeScript, and in hexadecimal for the other languages. It returns an error if it can't reproduce
// the bytes that Powertools hashes.
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
	// Powertools for Java removes leading zeros, then pads with zeros to 32 digits. So an MD5 hash,
	// which has 32 digits, stays the same. A longer hash loses leading zeros.
	digits := hex.EncodeToString(sum)
	for l == Java && len(digits) > 32 && digits[0] == '0' {
		digits = digits[1:]
	}
	return digits, nil
}

// write returns the bytes that Powertools hashes for the data v. It returns an error if it can't
// reproduce these bytes.
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
