package dynamostore

import "fmt"

// hidesExpiry returns an error if the item has no expiration, but an attribute that looks like one.
// The item then seems to come from a store with a different Options.ExpirationAttribute.
//
// Without the error, an operator would take the item for a held record, which waits for an operator
// and has no expiration. The operator would set an expiration that the Lambda functions don't read.
func hidesExpiry(itm *item, attrs attributes) error {
	if itm.Expiration.isSet {
		return nil
	}
	leaseEnd := fromMillis(itm.LeaseEnd)
	for name, v := range attrs {
		var seconds integer
		if takeValue(&seconds, v) != "" {
			continue
		}
		// Accept only times in the hundred years after the end of the lease. Times in epoch
		// milliseconds, read as seconds, are thousands of years in the future.
		if at := expiryOf(seconds); at.After(leaseEnd) && at.Before(leaseEnd.AddDate(100, 0, 0)) {
			return foreign(fmt.Sprintf("it has no %s, but %q may be the expiration under another name", attrExpiration, name), attrs)
		}
	}
	return nil
}
