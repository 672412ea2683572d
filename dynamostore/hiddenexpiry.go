package dynamostore

import "fmt"

// hidesExpiry returns an error if the item seems to come from a store with another
// Options.ExpirationAttribute. The item then has no attribute with this store's name for the
// expiration, but another attribute whose value looks like an expiration.
//
// The error protects operators from a mistake. Under policy Hold, a record without an expiration
// waits for an operator's decision. An operator would take this item for such a record, and would
// set an expiration that the Lambda functions don't read.
func hidesExpiry(it *item, attrs attributes) error {
	if it.Expiration.there {
		return nil
	}
	leaseEnd := fromMillis(it.LeaseEnd)
	for name, v := range attrs {
		var seconds integer
		if takeValue(&seconds, v) != "" {
			continue
		}
		// Accept only times in the hundred years after the end of the lease. This excludes
		// the record's times in epoch milliseconds: read as seconds, they are thousands of
		// years in the future.
		if at := expiryOf(seconds); at.After(leaseEnd) && at.Before(leaseEnd.AddDate(100, 0, 0)) {
			return foreign(fmt.Sprintf("it has no %s, but %q may be the expiration under another name", attrExpiration, name), attrs)
		}
	}
	return nil
}
