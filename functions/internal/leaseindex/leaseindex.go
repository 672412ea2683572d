// Package leaseindex has every function write, and read, the same index of leases.
package leaseindex

import (
	"os"

	"github.com/lambdaidem/toolkit/dynamostore"
)

// Variable is one that template.yaml sets: the name of the index of leases. Without
// it there is none.
const Variable = "IDEMPOTENCY_LEASE_INDEX"

// Option is for dynamostore.New: records in progress are in the index, so that
// functions/watch finds the leases that died.
func Option(o *dynamostore.Options) { o.LeaseIndex = os.Getenv(Variable) }
