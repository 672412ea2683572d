//go:build !race

package simulator

import (
	"regexp"
	"strconv"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// delayMutations are the mistakes about what a delayed request relies on.
var delayMutations = []mistake{
	// What the guard and the store see stays the same: only TTL deletes a record's item
	// at most 11 minutes after it was written.
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

// expiryOnTheWire is an expiry, or what one is compared with.
var expiryOnTheWire = regexp.MustCompile(`"(:?expiration|:now_s)":\{"N":"([0-9]+)"\}`)

// shiftExpiry moves all of them.
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
