//go:build !race

package simulator

import (
	"regexp"
	"strconv"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// delayMutations are mistakes that delayed requests reveal.
var delayMutations = []mistake{
	// Requests and replies are changed by the same time, so the guard and the store notice nothing.
	// But TTL deletes a record's item too early, at most 11 minutes after it was written.
	{Mutation{Name: "TTL below the minimum", Request: shiftExpiry(-tooEarly), Reply: func(_ string, _ []byte, _ int, body []byte) []byte {
		return shiftExpiry(tooEarly)("", body)
	}}, []Check{CheckOneEffect, CheckRefused, CheckHeld, CheckTogether, CheckCreated}},
	{Mutation{Name: "forget immediately", Request: func(op string, body []byte) []byte {
		if describe(op, body) != "forget" {
			return body
		}
		return expiryOnTheWire.ReplaceAll(body, []byte(`"$1":{"N":"1"}`))
	}}, []Check{CheckOperatorTold, CheckOneEffect, CheckExpired}},
}

const tooEarly = lambdaidem.KeptAfterExpiry + lambdaidem.MinTTL - time.Minute

// expiryOnTheWire matches an expiration in a request or a reply, or the value with which a condition
// compares one.
var expiryOnTheWire = regexp.MustCompile(`"(:?expiration|:now_s)":\{"N":"([0-9]+)"\}`)

// shiftExpiry returns a function that adds a duration to everything that expiryOnTheWire matches.
func shiftExpiry(by time.Duration) func(string, []byte) []byte {
	return func(_ string, body []byte) []byte {
		return expiryOnTheWire.ReplaceAllFunc(body, func(found []byte) []byte {
			parts := expiryOnTheWire.FindSubmatch(found)
			n, err := strconv.ParseInt(string(parts[2]), 10, 64)
			must(err)
			return []byte(`"` + string(parts[1]) + `":{"N":"` + strconv.FormatInt(n+int64(by/time.Second), 10) + `"}`)
		})
	}
}
