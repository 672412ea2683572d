package lambdaidem

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// check panics if an option is invalid. The panic names the field.
func (o Options) check() {
	check := func(ok bool, field, want string, got any) {
		if !ok {
			panic(fmt.Sprintf("lambdaidem: Options.%s is %v; it must be %s", field, got, want))
		}
	}
	check(validIDPrefix(o.IDPrefix), "IDPrefix", `at most 40 ASCII letters, digits and characters of "-_.:/=+@"`, strconv.Quote(o.IDPrefix))
	check(validHeaderName(o.KeyHeader), "KeyHeader", "a header name", o.KeyHeader)
	check(len(o.Methods) > 0 && !slices.Contains(o.Methods, ""), "Methods", "HTTP methods, none empty", o.Methods)
	check(o.TTL >= MinTTL, "TTL", "at least 15 minutes (MinTTL): a signed request may arrive as late, and must find its record", o.TTL)
	check(o.Policy == Rerun || o.Policy == Hold, "Policy", "Rerun or Hold", o.Policy)
	check(!o.Optimistic || o.Policy != Hold, "Policy", "Rerun where Optimistic is set: without a lease there is nothing to hold", o.Policy)
	check(!o.Optimistic || !o.FailOpen, "FailOpen", "false where Optimistic is set: nothing but the store's transaction has an effect", o.FailOpen)
	check(o.MaxSkew > 0, "MaxSkew", "positive", o.MaxSkew)
	check(o.LeaseDuration > 0, "LeaseDuration", "positive", o.LeaseDuration)
	check(o.Reserve >= 0, "Reserve", "positive, or 0 for the default", o.Reserve)
	check(o.CleanupTimeout > 0, "CleanupTimeout", "positive", o.CleanupTimeout)
	check(o.Wait >= 0, "Wait", "positive, or 0 not to wait", o.Wait)
	check(o.MinRunTime > 0, "MinRunTime", "positive", o.MinRunTime)
	check(o.RetryAfter > 0, "RetryAfter", "positive", o.RetryAfter)
	check(o.MismatchStatus == http.StatusUnprocessableEntity || o.MismatchStatus == http.StatusConflict,
		"MismatchStatus", "422 or 409", o.MismatchStatus)
	check(o.Cache.Entries >= 0, "Cache.Entries", "positive, or 0 for the default", o.Cache.Entries)
	check(o.Cache.Bytes >= 0, "Cache.Bytes", "positive, or 0 for the default", o.Cache.Bytes)
	check(o.Cache.MaxAge >= 0, "Cache.MaxAge", "positive, or 0 for the default", o.Cache.MaxAge)
	for _, m := range o.ReplayMarks {
		check(validHeaderName(m.Name) && validHeaderValue(m.Value), "ReplayMarks", "headers", m)
	}
	check(o.MaxURI > 0, "MaxURI", "positive", o.MaxURI)
	check(o.MaxBody > 0, "MaxBody", "positive", o.MaxBody)
	check(o.MaxHeaders > 0, "MaxHeaders", "positive", o.MaxHeaders)
	check(o.MaxJSONDepth > 0, "MaxJSONDepth", "positive", o.MaxJSONDepth)
	check(o.MaxStepBytes > 0, "MaxStepBytes", "positive", o.MaxStepBytes)
}

// validIDPrefix reports whether s can be an Options.IDPrefix. It refuses "#", because a "#" follows
// the prefix in an id, and "*" and "?", because they are wildcards in an IAM policy.
func validIDPrefix(s string) bool {
	// In an id "lambdaidem#X#...", X is either a prefix or the hash of a record without a prefix.
	// In the latter case, "#..." names one part of a large answer. The length of X must show which
	// it is, so a prefix must be shorter than a hash.
	const maxLength = 40 // bytes
	return len(s) <= maxLength && !strings.ContainsFunc(s, func(r rune) bool {
		return !isASCIILetterOrDigit(r) && !strings.ContainsRune("-_.:/=+@", r)
	})
}

func isASCIILetterOrDigit(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

func validHeaderName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !isASCIILetterOrDigit(r) && !strings.ContainsRune("!#$%&'*+-.^_`|~", r) // RFC 9110, 5.6.2
	})
}

func validHeaderValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}
