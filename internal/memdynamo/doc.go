// Package memdynamo is an in-process DynamoDB: the JSON protocol in, the JSON
// protocol out, tables in memory between. It exists so that the real
// aws-sdk-go-v2 client, retries and all, can run inside testing/synctest
// against something that answers like DynamoDB, at once and always alike.
//
// It is deterministic and pure: no goroutines, no time but the clock that it is
// given, no randomness, no global state, and no map order that shows. One
// request is served at a time, in the order in which they arrive; a request
// either happened as a whole or did not. Losing, delaying and failing requests
// on purpose is the simulator's business; for answers it has [Error] and
// [Canceled].
//
// # What it speaks
//
// CreateTable, DescribeTable, UpdateTimeToLive, DescribeTimeToLive, PutItem,
// GetItem, UpdateItem, DeleteItem, Scan and TransactWriteItems, with every
// expression that these take. A request that uses more than that (an index, a
// legacy parameter such as Expected) is refused with a SerializationException
// that names the field, never answered as if the field were not there.
//
// # Transactions
//
// A TransactWriteItems is looked at in this order, and fails at the first step
// that finds a fault:
//
//  1. What the request alone shows: members that lack or break a constraint
//     (reported together), values, expressions, a Put of more than 400 KB, more
//     than 4 MB in all. This is a ValidationException.
//  2. Its ClientRequestToken. For ten minutes from when a transaction was
//     applied, the same bytes under its token are answered with success and
//     write nothing, and any others with an IdempotentParameterMismatchException.
//     A transaction that was refused or canceled leaves no token.
//  3. Tables (ResourceNotFoundException) and empty keys (ValidationException).
//  4. Keys that are not the table's: a TransactionCanceledException, whose only
//     reason is the first action with such a key.
//  5. Two actions on one item (ValidationException).
//  6. Every condition and every update, each by the items as they were before:
//     a TransactionCanceledException with the reasons of all that failed.
//
// Requests are served one at a time, so that no transaction meets another one:
// TransactionConflict, TransactionInProgressException and throttling come from
// the simulator alone.
//
// AWS documents that identical calls are one, and was seen to take a repeated
// request whose members come in another order. To compare the bytes is stricter,
// on purpose: the SDK for Go writes the members of a map in random order, so it
// sends identical bytes when it retries by itself, but never surely in a second
// call.
//
// AWS does not say how it counts the 4 MB, or whether a token is looked at before
// or after the request's other faults; there this package does as DynamoDB Local.
//
// # Global tables
//
// A DB is of one Region. [DB.Global] has a table say that it is a replica, and
// refuse what a replica does; [DB.Replicate] puts what another Region wrote.
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
//   - What an action's update finds in its item (a wrong type, a missing
//     attribute, a path that leads nowhere, more than 400 KB) cancels the
//     transaction, as that action's reason, beside the other actions'; DynamoDB
//     Local answers a ValidationException of the whole, as it does for a key
//     that lacks an attribute or has one too many.
//   - A key that is not the table's is the only reason, before conditions and
//     before two actions on one item; DynamoDB Local looks at those too, and
//     finds two actions on one item only where nothing else fails.
//   - In a transaction each item's size is rounded up to units by itself, checks
//     and deletes of nothing included, and units are told by kind; DynamoDB Local
//     adds up the sizes first, counts checks and deletes of nothing less, and
//     tells no kind.
//   - DynamoDB Local compares what a request under a known token says, without
//     its ReturnConsumedCapacity, takes an empty token, and answers a mismatch
//     without a message.
//   - DynamoDB Local takes a transaction's Update without an UpdateExpression,
//     members that it does not know and words that are not in an enumeration,
//     and never shows a conflict or a TransactionInProgressException.
//   - Some messages are worded otherwise ("Requested resource not found" is
//     "Cannot do operations on a non-existent table" there). Error types are
//     the same.
package memdynamo
