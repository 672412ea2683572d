// Package memdynamo implements DynamoDB's JSON protocol in the process, with tables in memory.
// With it, the real client of aws-sdk-go-v2, including its retries, can run inside
// testing/synctest against a database that replies like DynamoDB, at once and deterministically.
//
// The package uses no goroutines, no time except the given clock, no randomness and no global
// state, and its results don't depend on the order of maps. Requests are served one at a time, in
// the order in which they arrive. A request is applied completely or not at all. Losing, delaying
// and failing requests on purpose is the task of a simulator, which can use the replies of
// [Error] and [Canceled].
//
// # Supported operations
//
// The package supports CreateTable, DescribeTable, UpdateTimeToLive, DescribeTimeToLive, PutItem,
// GetItem, UpdateItem, DeleteItem, Scan and TransactWriteItems, with all their kinds of
// expressions. A request with an unsupported field (such as an index, or a legacy parameter such
// as Expected) is refused with a SerializationException that names the field. The field is never
// ignored.
//
// # Transactions
//
// A TransactWriteItems request passes these checks in order, and fails at the first one that
// finds an error:
//
//  1. What the request alone shows: members that are missing or break a constraint
//     (reported together), values, expressions, a Put of more than 400 KB, more
//     than 4 MB in all. The error is a ValidationException.
//  2. Its ClientRequestToken. For ten minutes after a transaction was applied, a
//     request with its token and identical bytes succeeds without writing anything,
//     and a request with its token and other bytes gets an
//     IdempotentParameterMismatchException. A transaction that was refused or
//     canceled leaves no token.
//  3. Tables (ResourceNotFoundException) and empty keys (ValidationException).
//  4. Keys that don't match the table's key schema. The error is a
//     TransactionCanceledException, whose only reason is the first action with such
//     a key.
//  5. Two actions on one item (ValidationException).
//  6. Every condition and every update, evaluated on the items as they were before.
//     The error is a TransactionCanceledException with the reasons of all actions
//     that failed.
//
// Requests are served one at a time, so transactions never conflict: TransactionConflict,
// TransactionInProgressException and throttling come only from the simulator.
//
// AWS documents that identical calls with one token count as one, and it was observed to accept a
// repeated request whose members come in another order. Comparing the bytes is deliberately
// stricter: the SDK for Go writes the members of a map in random order, so its own retries send
// identical bytes, but a second call may not.
//
// AWS does not document how it counts the 4 MB, or whether it checks a token before or after
// other errors of the request. In both cases this package does the same as DynamoDB Local.
//
// # Global tables
//
// A DB is in one Region. [DB.Global] makes a table describe itself as a replica and refuse what a
// replica refuses. [DB.Replicate] applies a write of another Region.
//
// # Where DynamoDB Local differs from AWS
//
// A differential test compares this package with DynamoDB Local. Where DynamoDB Local is known to
// differ from AWS, this package does what AWS does, and the test avoids the difference:
//
//   - An UpdateItem that only removes (REMOVE, DELETE) leaves an absent item absent. DynamoDB
//     Local creates an item with only the key.
//   - For a nested path, UPDATED_OLD and UPDATED_NEW return only the part that was written.
//     DynamoDB Local returns the whole top-level attribute.
//   - A number is returned in its plain form: 1.50 as 1.5, and 1e3 as 1000. DynamoDB Local
//     returns it as it was sent.
//   - Strings are ordered by their UTF-8 bytes. DynamoDB Local orders them by UTF-16 code units.
//   - A DeleteItem of an absent item returns ConsumedCapacity only if the request asks for it.
//   - A body that does not follow the protocol gets a SerializationException. DynamoDB Local
//     returns status 500.
//   - An update of a key attribute is refused before the condition is evaluated. DynamoDB Local
//     evaluates the condition first.
//   - If an action's update does not fit its item (a wrong type, a missing attribute, an invalid
//     path, or more than 400 KB), the transaction is canceled, and the reason of that action says
//     so, next to the reasons of the other actions. DynamoDB Local returns a ValidationException
//     for the whole transaction. It does the same for a key that lacks an attribute or has one
//     too many.
//   - A key that does not match the table's key schema is the only reason, and is checked before
//     conditions and before two actions on one item. DynamoDB Local reports the other reasons
//     too, and detects two actions on one item only if nothing else fails.
//   - In a transaction, each item's size is rounded up to units separately, including the items
//     of condition checks and of deletes of absent items, and the units are reported by kind.
//     DynamoDB Local adds up the sizes first, counts less for checks and for deletes of absent
//     items, and does not report the kind.
//   - For a request with a known token, DynamoDB Local compares the meaning of the request,
//     without ReturnConsumedCapacity. It accepts an empty token, and its error for a mismatch has
//     no message.
//   - DynamoDB Local accepts an Update without an UpdateExpression in a transaction, unknown
//     members, and invalid values of enumerations. It never returns a conflict or a
//     TransactionInProgressException.
//   - Some messages have other words. For example, "Requested resource not found" is "Cannot do
//     operations on a non-existent table" in DynamoDB Local. The error types are the same.
package memdynamo
