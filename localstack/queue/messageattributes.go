package queue

import (
	"crypto/md5" //nolint:gosec // SQS's own digest: it finds damage, not forgery
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// checkAttributes holds the rules of "Amazon SQS message metadata".
func checkAttributes(attributes map[string]Attribute) error {
	if len(attributes) > 10 {
		return invalidParameterValue.error("Number of message attributes [%d] exceeds the allowed maximum [10].", len(attributes))
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if !validAttributeName(name) {
			return invalidParameterValue.error("Message (user) attribute name '%s' is invalid: it can have A-Z, a-z, 0-9, underscore, hyphen and single inner periods, up to 256, and can't begin with AWS. or Amazon.", name)
		}
		if err := attributes[name].check(name); err != nil {
			return err
		}
	}
	return nil
}

func validAttributeName(name string) bool {
	lower := strings.ToLower(name)
	return name != "" && len(name) <= 256 &&
		!strings.HasPrefix(lower, "aws.") && !strings.HasPrefix(lower, "amazon.") &&
		!strings.HasPrefix(name, ".") && !strings.HasSuffix(name, ".") && !strings.Contains(name, "..") &&
		!strings.ContainsFunc(name, func(r rune) bool { return r != '.' && !isWord(r) })
}

func (a Attribute) check(name string) error {
	kind, _, _ := strings.Cut(a.DataType, ".")
	if len(a.DataType) > 256 || !validText(a.DataType) || !slices.Contains([]string{"String", "Number", "Binary"}, kind) {
		return invalidParameterValue.error("The message attribute '%s' has an invalid message attribute type, the set of supported type prefixes is Binary, Number, and String.", name)
	}
	empty := a.StringValue == ""
	if kind == "Binary" {
		empty = len(a.BinaryValue) == 0
	}
	switch {
	case empty:
		return invalidParameterValue.error("Message (user) attribute '%s' must contain a non-empty value of type '%s'.", name, kind)
	case kind != "Binary" && a.BinaryValue != nil || kind == "Binary" && a.StringValue != "":
		return invalidParameterValue.error("Message (user) attribute '%s' has a value that is not of its type '%s'.", name, kind)
	case !validText(a.StringValue):
		return invalidMessageContents.error("Invalid characters found in message attribute '%s'.", name)
	case kind == "Number" && !isNumber(a.StringValue):
		return invalidParameterValue.error("Can't cast the value of message (user) attribute '%s' to a number.", name)
	}
	return nil
}

func isNumber(s string) bool {
	if strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune("0123456789+-.eE", r) }) {
		return false // not 0x1p4, Inf or 1_000
	}
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}

func md5Hex(b []byte) string {
	sum := md5.Sum(b) //nolint:gosec // see the import
	return hex.EncodeToString(sum[:])
}

// md5OfAttributes is the digest of "Calculating the MD5 message digest for
// message attributes": in the order of names, each of name, type and value with
// its length before it, and one byte that tells text from bytes.
func md5OfAttributes(attributes map[string]Attribute) string {
	if len(attributes) == 0 {
		return ""
	}
	var b []byte
	field := func(s string) {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s))) //nolint:gosec // a message has 1 MiB at most
		b = append(b, s...)
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		a := attributes[name]
		field(name)
		field(a.DataType)
		if strings.HasPrefix(a.DataType, "Binary") {
			b = append(b, 2)
			field(string(a.BinaryValue))
		} else {
			b = append(b, 1)
			field(a.StringValue)
		}
	}
	return md5Hex(b)
}
