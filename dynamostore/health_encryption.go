package dynamostore

import (
	"context"
	"fmt"
)

// checkEncryption checks that Options.Encryption.Current returns a key, and that Find returns the
// same key for its id. The results are cached: while the calls of Current and Find succeed,
// checkEncryption calls each of them at most once per Encryption.KeyFor.
func (c *HealthCheck) checkEncryption(ctx context.Context) Check {
	if err := c.store.Prepare(ctx); err != nil {
		return Check{Status: HealthFail, Code: NoKey, Err: err,
			Detail: fmt.Sprintf("encryption of table %q has no key, and every request is refused; look at what Options.Encryption.Current asks, and at its permissions (cause: %v)", c.store.table, err)}
	}
	if err := c.store.keys.prove(ctx); err != nil {
		return Check{Status: HealthFail, Code: NoKey, Err: err,
			Detail: fmt.Sprintf("encryption of table %q does not find the key that it encrypts with, and no other process can replay its answers; look at what Options.Encryption.Find asks, and at its permissions (cause: %v)", c.store.table, err)}
	}
	return Check{Status: HealthPass}
}

// encryptionCheck is the Check.Name of the check that tests Options.Encryption.
const encryptionCheck = "encryption"
