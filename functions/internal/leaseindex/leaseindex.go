// Package leaseindex configures the index of leases, which must be the same in every
// function that shares the table.
package leaseindex

import (
	"os"

	"github.com/lambdaidem/toolkit/dynamostore"
)

// Variable is the environment variable with the name of the index. template.yaml sets it.
// If it is empty or absent, the functions use no index.
const Variable = "IDEMPOTENCY_LEASE_INDEX"

// Option is an option for dynamostore.New. It adds records in progress to the index, so that
// functions/watch finds the leases whose attempts died.
func Option(o *dynamostore.Options) { o.LeaseIndex = os.Getenv(Variable) }
