// Package dynamostore keeps idempotency records in a DynamoDB table: it is the
// [lambdaidem.Store] of production.
//
//	store := dynamostore.New(dynamodb.NewFromConfig(cfg), "idempotency")
//	guard := lambdaidem.New(store)
//
// # The table
//
// One string partition key named id, no sort key, and TTL on the attribute
// expiration. [CreateTable] makes one for tests and local use;
// [Store.CheckTable] says in words what is wrong with one that is there.
//
// # The item
//
//	id                      S  partition key: a prefix and a hash
//	status                  S  INPROGRESS, COMPLETED or RELEASED
//	expiration              N  epoch seconds, the TTL attribute; absent: it does not expire
//	in_progress_expiration  N  epoch milliseconds, the end of the lease
//	validation              S  the request's fingerprint
//	data                    S  the answer, readable in the console; B if it is not UTF-8
//	token                   S  random, of the attempt that wrote last: the fencing token
//	attempt                 N  1 for the first, raised by every takeover
//	outcome                 S  succeeded or failed, once completed
//	scope                   S  what the id was hashed from, readable, without the key
//	started_at              N  epoch milliseconds, when the current attempt began
//	completed_at            N  epoch milliseconds, once completed
//	failure                 M  code, type, message, status: instead of data
//	encoding                S  of an answer that data does not have as it is: gzip, or plain (over parts)
//	parts                   M  beside it: count (0: data has the answer), length, checksum, failure
//
// The first six are named as in Powertools for AWS Lambda, and can be renamed
// by [Options]. A table may be shared with it and with others, a record never:
// an item without our token is refused with [lambdaidem.ReasonForeign], and is
// neither replayed nor overwritten, even when it has expired. Tables with a
// sort key are not supported.
//
// # Round trips and cost
//
//	first request    PutItem, UpdateItem              1 + KB of the completed item, write units
//	replay           PutItem, refused                 KB of the completed item, write units
//	other payload    PutItem, refused                 the same
//	in progress      PutItem, refused                 1 write unit
//	takeover         PutItem, refused; 2 UpdateItem   2 + KB of the completed item, write units
//	waiting          GetItem for each poll            1 read unit for each 4 KB of the item
//
// KB are rounded up. The units are AWS's rule, not a measurement: a lock is
// below 1 KB, and a refused conditional write consumes by the item that it found.
//
// A refused PutItem brings the record along (ReturnValuesOnConditionCheckFailure),
// so nothing is read twice. An item holds at most 400 KB, names included; a
// larger answer is refused with [lambdaidem.ReasonTooLarge] before it is sent.
//
// # Attempts
//
// The store has a client of its own, derived from yours, with set attempts,
// backoff and time per attempt; see [Options]. Whether a write happened is
// judged over all attempts on the wire: [lambdaidem.StoreError].NotApplied is
// true only if every single one was refused, or never left.
//
// # One Region
//
// A record is written in one Region. In a global table with multi-Region
// eventual consistency two Regions can take the same lock at once; send all
// requests that can share a key to one Region. CheckTable warns of it.
//
// # Permissions
//
// Nothing but this, on the one table:
//
//	{
//	  "Version": "2012-10-17",
//	  "Statement": [{
//	    "Effect": "Allow",
//	    "Action": ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"],
//	    "Resource": "arn:aws:dynamodb:REGION:ACCOUNT:table/TABLE"
//	  }]
//	}
//
// CheckTable needs dynamodb:DescribeTable and dynamodb:DescribeTimeToLive too.
package dynamostore
