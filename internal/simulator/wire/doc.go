// Package wire is an in-process DynamoDB: the JSON protocol in, the JSON
// protocol out, tables in memory between. It exists so that the real
// aws-sdk-go-v2 client, retries and all, can run inside testing/synctest
// against something that answers like DynamoDB, at once and always alike.
//
// It is deterministic and pure: no goroutines, no time but the clock that it is
// given, no randomness, no global state, and no map order that shows. One
// request is served at a time, in the order in which they arrive; a request
// either happened as a whole or did not. Losing, delaying and failing requests
// on purpose is the simulator's business; for answers it has [Error].
//
// # What it speaks
//
// CreateTable, DescribeTable, UpdateTimeToLive, DescribeTimeToLive, PutItem,
// GetItem, UpdateItem, DeleteItem and Scan, with every expression that these
// take. A request that uses more than that (an index, a legacy parameter such
// as Expected) is refused with a SerializationException that names the field,
// never answered as if the field were not there.
//
// # Where DynamoDB Local differs from AWS
//
// A differential test holds this package against DynamoDB Local. Where the two
// are known to differ, this package does what AWS does, and the test steps
// around it:
//
//   - An UpdateItem that only removes (REMOVE, DELETE) leaves an absent item
//     absent; DynamoDB Local makes one of the key alone.
//   - UPDATED_OLD and UPDATED_NEW return of a nested path only the part that
//     was written; DynamoDB Local returns the whole top-level attribute.
//   - A number is returned in its plain form, 1.50 as 1.5 and 1e3 as 1000;
//     DynamoDB Local returns it as it was sent.
//   - Strings are ordered by their UTF-8 bytes; DynamoDB Local orders them by
//     UTF-16 code units.
//   - A DeleteItem of an absent item returns ConsumedCapacity only when asked.
//   - A body that is not the protocol's is a SerializationException; DynamoDB
//     Local answers 500.
//   - An update of a key attribute is refused before the condition is looked
//     at; DynamoDB Local looks at the condition first.
//   - Some messages are worded otherwise ("Requested resource not found" is
//     "Cannot do operations on a non-existent table" there). Error types are
//     the same.
package wire
