package iam

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/localstack/template"
)

// condition is a key of a Condition element ("IAM JSON policy elements: Condition operators").
type condition struct {
	text     string // for a log: ForAllValues:StringLike dynamodb:LeadingKeys
	key      string // in lower case
	values   []string
	set      string // ForAllValues, ForAnyValue, or empty
	ifExists bool
	negated  bool
	test     func(have, want string) bool // reports whether a request's value matches a value of the policy; nil for the operator Null
}

// tests maps an operator to the comparison of a request's value with a value of the policy.
var tests = map[string]func(have, want string) bool{
	"StringEquals":           exactly,
	"StringEqualsIgnoreCase": func(have, want string) bool { return strings.EqualFold(have, unquote(want)) },
	"StringLike":             func(have, want string) bool { return matches(want, have) },
	"ArnEquals":              func(have, want string) bool { return matches(want, have) }, // "ArnEquals and ArnLike behave identically"
	"ArnLike":                func(have, want string) bool { return matches(want, have) },
	"Bool":                   func(have, want string) bool { return strings.EqualFold(have, unquote(want)) },
	"BinaryEquals":           exactly,

	"NumericEquals":            number(func(c int) bool { return c == 0 }),
	"NumericLessThan":          number(func(c int) bool { return c < 0 }),
	"NumericLessThanEquals":    number(func(c int) bool { return c <= 0 }),
	"NumericGreaterThan":       number(func(c int) bool { return c > 0 }),
	"NumericGreaterThanEquals": number(func(c int) bool { return c >= 0 }),

	"DateEquals":            date(func(c int) bool { return c == 0 }),
	"DateLessThan":          date(func(c int) bool { return c < 0 }),
	"DateLessThanEquals":    date(func(c int) bool { return c <= 0 }),
	"DateGreaterThan":       date(func(c int) bool { return c > 0 }),
	"DateGreaterThanEquals": date(func(c int) bool { return c >= 0 }),

	// Only AWS knows the client's IP address, so a condition on the address is undecided before
	// anything is compared.
	"IpAddress": func(string, string) bool { return false },
}

// negations maps an operator that holds if no value matches to the operator that it negates.
var negations = map[string]string{
	"StringNotEquals": "StringEquals", "StringNotEqualsIgnoreCase": "StringEqualsIgnoreCase", "StringNotLike": "StringLike",
	"ArnNotEquals": "ArnEquals", "ArnNotLike": "ArnLike", "NumericNotEquals": "NumericEquals", "DateNotEquals": "DateEquals",
	"NotIpAddress": "IpAddress",
}

func exactly(have, want string) bool { return have == unquote(want) }

// unquote returns the text that a pattern without wildcards stands for.
func unquote(pattern string) string { return strings.ReplaceAll(pattern, string(literal), "") }

func number(test func(int) bool) func(have, want string) bool {
	return func(have, want string) bool {
		a, errA := strconv.ParseFloat(have, 64)
		b, errB := strconv.ParseFloat(unquote(want), 64)
		return errA == nil && errB == nil && test(cmp.Compare(a, b))
	}
}

func date(test func(int) bool) func(have, want string) bool {
	return func(have, want string) bool {
		a, okA := moment(have)
		b, okB := moment(unquote(want))
		return okA && okB && test(a.Compare(b))
	}
}

// moment reads a date in ISO 8601 or in epoch seconds.
func moment(text string) (time.Time, bool) {
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Unix(seconds, 0), true
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// newCondition returns an error for an unknown operator, because an unknown condition must neither
// allow nor refuse anything.
func newCondition(from template.Condition) (condition, error) {
	c := condition{text: from.Operator + " " + from.Key, key: strings.ToLower(from.Key), values: from.Values}
	if c.key == "" {
		return c, nil // only AWS knows the condition, and holds returns undecided
	}
	operator := from.Operator
	for _, set := range []string{"ForAllValues", "ForAnyValue"} {
		if rest, ok := strings.CutPrefix(operator, set+":"); ok {
			c.set, operator = set, rest
		}
	}
	if rest, ok := strings.CutSuffix(operator, "IfExists"); ok {
		c.ifExists, operator = true, rest
	}
	if operator == "Null" && c.set == "" && !c.ifExists {
		return c, nil
	}
	if positive, ok := negations[operator]; ok {
		c.negated, operator = true, positive
	}
	if c.test = tests[operator]; c.test == nil {
		return condition{}, fmt.Errorf("the condition operator %s is not known: correct it, or check no policies (up: -no-iam)", from.Operator)
	}
	if c.set == "" && multivalued[c.key] {
		return condition{}, fmt.Errorf("the condition %s needs ForAllValues: or ForAnyValue: before its operator, because a request may have several values of %s",
			c.text, from.Key)
	}
	return c, nil
}

// holds reports whether the condition holds for a request.
func (c *condition) holds(keys Keys) truth {
	if !decidable(c.key) {
		return undecided
	}
	values := keys[c.key]
	if c.test == nil { // Null
		return truthOf(slices.Contains(c.values, strconv.FormatBool(len(values) == 0)))
	}
	if len(values) == 0 {
		return truthOf(c.ifExists || c.set == "ForAllValues" || c.set == "" && c.negated)
	}
	if slices.Contains(values, unknownValue) {
		return undecided
	}
	count, result := 0, yes
	for _, value := range values {
		switch c.one(keys, value) {
		case yes:
			count++
		case undecided:
			result = undecided
		case no:
		}
	}
	switch {
	case c.set == "ForAnyValue" && count > 0, count == len(values):
		return yes
	case result == undecided:
		return undecided
	}
	return no
}

// one reports whether one value of the request satisfies the operator.
func (c *condition) one(keys Keys, value string) truth {
	result := no
	for _, want := range c.values {
		pattern, known := keys.expand(want)
		switch {
		case known == undecided:
			result = undecided
		case known == yes && c.test(value, pattern):
			return truthOf(!c.negated)
		}
	}
	if result == undecided {
		return undecided
	}
	return truthOf(c.negated)
}
