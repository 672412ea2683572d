// Package dynamostore implements [lambdaidem.Store] with a DynamoDB table. It is the store
// for production.
//
//	store := dynamostore.New(dynamodb.NewFromConfig(cfg), "idempotency")
//	guard := lambdaidem.New(store)
//
// # The table
//
// The table has a string partition key named id. It has no sort key, unless
// Options.SortKeyAttribute names one; every item then has the same value in both. TTL is
// enabled on the attribute expiration. [CreateTable] creates such a table for tests and local
// use. [Store.CheckTable] reports the problems of an existing table.
//
// # The item
//
//	id                      S  the partition key: a prefix and a hash
//	status                  S  INPROGRESS, COMPLETED or RELEASED
//	expiration              N  the TTL attribute, epoch seconds: one hour after the record expires (see below); absent if it does not expire
//	in_progress_expiration  N  the end of the lease, epoch milliseconds
//	validation              S  the request's fingerprint
//	data                    S  the answer, readable in the console; B if it is not UTF-8
//	token                   S  the fencing token: random, and new for each attempt
//	attempt                 N  1 for the first attempt, one more for each takeover
//	outcome                 S  succeeded or failed, once the record is completed
//	scope                   S  namespace, method, route and caller in readable form; the id is a hash of these and the key
//	started_at              N  when the current attempt began, epoch milliseconds
//	invocation              S  Lambda's request id of the current attempt, to find its log; absent outside Lambda
//	last_failure            S  why the record was released: the code of the error, http_ and the status, panic, or the error's Go type
//	bound                   S  why a released record refuses another payload: downstream_key, dead_attempt or inner_call; absent if it accepts one
//	completed_at            N  when the record was completed, epoch milliseconds
//	failure                 M  the error to replay: code, type, message, status; a record that has it has no data
//	encoding                S  how the answer is encoded: gzip, plain (only in parts), sealed or sealed gzip; or that there are steps: steps or sealed steps
//	parts                   M  describes an answer with an encoding: count of parts (0 if data has the answer), length, checksum, failure
//	steps                   M  the results of steps by name, until the record is completed
//	operations              L  the changes that operators made: what, by, reason, at (epoch milliseconds), attempt, token, forced
//	encrypts                S  the cipher that will encrypt the answer, set when the lease is taken; absent without encryption
//	erasing                 M  the parts that a purge has yet to delete, in the same form as the attribute parts; only until the purge is done
//	lease_shard             S  the partition key in Options.LeaseIndex, while the record is in progress
//
// The first six attributes have the same names as in Powertools for AWS Lambda, and
// [Options] can rename them. Powertools and other tools can use the same table, but not the
// same items: an item without the attribute token is refused with
// [lambdaidem.ReasonForeign]. It is neither replayed nor overwritten, even if it has
// expired.
//
// # Expiry and deletion
//
// When a record's time to live is over, the record expires: a request that is made after
// that treats it as absent. The item remains for another hour
// ([lambdaidem.KeptAfterExpiry]), because the TTL attribute is one hour later than the
// expiry. During that hour, the item refuses requests to DynamoDB that were made before the
// expiry and arrive late.
//
// # Round trips and cost
//
// The requests that DynamoDB receives for one request of a client, and the capacity that
// they consume:
//
//	first request    PutItem, UpdateItem              1 + KB of the completed item, write units
//	  in parts       and a PutItem for each           and KB of each part, write units
//	replay           PutItem, refused                 KB of the completed item, write units
//	  in parts       and a GetItem for each           and a read unit for each 4 KB of the parts
//	other payload    PutItem, refused                 KB of the completed item, write units
//	in progress      PutItem, refused                 1 write unit
//	takeover         PutItem, refused; 2 UpdateItem   2 + KB of the completed item, write units
//	step             UpdateItem                       KB of the item with its steps, write units
//	waiting          GetItem for each poll            1 read unit for each 4 KB of the item
//
// Sizes in KB are rounded up. The units follow AWS's published rules and are not measured.
// The record of a request in progress is smaller than 1 KB. A conditional write that is
// refused consumes units for the size of the existing item.
//
// The next table shows the cost by the size of an answer's body, with the default options. The
// columns "new" and "replay" show the write units that a new request and a replay consume;
// units with an R are read units. The column "$" shows the price in dollars of a million
// requests in us-east-1 with on-demand capacity, if 5 in 100 requests are replays. The columns
// on the left are for a body of JSON, which can be compressed, and those on the right for
// random bytes ("noise"), which can't. A duplicate of a request in progress costs 1 write
// unit. [docs/cost.md] shows the cost with other options, with other shares of replays and
// with enlisted writes, and has measurements.
//
//	answer   JSON: new   replay      $      noise: new   replay       $
//	0.2 KB   2           1           1.22   2            1            1.22
//	1 KB     3           2           1.84   3            2            1.84
//	4 KB     3           2           1.84   6            5            3.72
//	32 KB    10          9           6.22   35           1 + 9 R      20.9
//	128 KB   34          1 + 8 R     20.3   131          1 + 33 R     78.0
//	400 KB   98          1 + 24 R    58.4   405          1 + 102 R    241
//	6 MB     1469        1 + 371 R   875    6189         1 + 1565 R   3685
//
// If the condition of a PutItem fails, DynamoDB returns the existing item in the error
// (ReturnValuesOnConditionCheckFailure). So the record needs no further read, except for the
// parts of a large answer.
//
// # Large answers
//
// An answer of at least Options.CompressFrom bytes is compressed with gzip, if that saves at
// least one write unit. An answer that then has more than Options.MaxInline bytes is stored
// in parts: separate items of 256 KB each, in the same table. The parts are written with
// PutItem, up to four at a time, before the completion that refers to them. A replay reads
// them with consistent GetItems. A request that is refused does not read them: a duplicate of
// a request in progress, or a request with another payload.
//
// A replay begins with a refused write, which costs write units for the size of the record.
// The record itself stays small: the refused write costs at most 21 write units by default
// (23 with the longest scopes). A replay of an answer in parts costs 1 write unit, and one
// read unit for each 4 KB of the parts. On demand, a read unit costs a fifth of a write
// unit. [Options].MaxInline explains which size is cheapest.
//
// The attributes of a part:
//
//	id          S  the record's id, the part's number and a checksum, separated by #
//	data        B  a piece of the answer
//	part        M  where the part belongs: record, token, scope, number, and when it was written
//	expiration  N  epoch seconds, one hour after the record's; absent if the record has none
//
// The checksum is the SHA-256 of the record's id, the token, the encoding, and the answer
// (the encrypted answer, if it is encrypted). Because the part's id contains the checksum, a
// part is never overwritten by different data. An answer is replayed only if every byte is as
// it was when the record was completed. If a part is missing or damaged, the reason is
// [lambdaidem.ReasonForeign], and the client receives [lambdaidem.ErrAnswerUnavailable]. If a
// part can't be read at the moment, the client receives a 503. If an attempt dies before its
// completion, no record refers to its parts, and they expire.
//
// An answer of 6 MB needs 6,000 write units. A new on-demand table takes 4,000 write units per
// second, and one partition of any table takes 1,000. So DynamoDB may throttle a function that
// stores large answers.
//
// A version of this package that does not know the encoding of a record refuses the record with
// [lambdaidem.ReasonForeign], instead of replaying an empty answer. The first versions had no
// encodings and refuse every answer that is compressed or in parts. While such a version runs on
// the same table, or if you may go back to such a version, set CompressFrom to math.MaxInt and
// MaxInline to 384 KB.
//
// # Retries
//
// The store uses a copy of your client with its own limits for the number of tries, their
// backoff and their duration; see [Options]. [lambdaidem.StoreError].NotApplied covers all
// tries of a request: it is true only if each of them was refused or was never sent.
//
// For speed, the store sends requests without the SDK's middleware, unless your client has a
// setting that needs the middleware. See [Transport] and [Store.Transport].
//
// # Operators
//
// For operators, [Store.Inspect] reads a complete record, [Store.Operator] releases, settles
// and purges records, and [Store.ScanLeases] finds leases without an index. They use the
// database's clock. Earlier versions of this package, which have no operations, preserve the
// list of operations in a record. The command idem provides all of this in a terminal.
//
// # Dead leases
//
// If an attempt dies, its lease ends and its effects are unknown. [Store.DeadLeases] finds such
// leases with the index Options.LeaseIndex, without scanning the table. By default there is no
// index, because it costs one more write unit for each lock, and one more when the attempt ends.
//
// # Encryption
//
// If [Options].Encryption is set, the store encrypts answers, stored failures, and the
// results of steps before it sends them. The encodings are then "sealed", "sealed gzip" and
// "sealed steps", and versions that don't know them refuse the record. The attribute data (of
// a record or a part) and the result of each step are then binary values, in the format that
// the file sealedtext.go describes. As soon as the lease is taken, the attribute encrypts
// says that the answer will be encrypted.
//
// # One Region
//
// Each record must be written in only one Region. In a global table with multi-Region
// eventual consistency, two Regions could take the same lock at the same time. Send all
// requests that can have the same key to one Region. CheckTable warns about such a table.
//
// # Permissions
//
// The store needs only these permissions, and only for its table:
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
// CheckTable also needs dynamodb:DescribeTable and dynamodb:DescribeTimeToLive.
// [Store.DeadLeases] also needs dynamodb:Query, only on the index
// arn:aws:dynamodb:REGION:ACCOUNT:table/TABLE/index/INDEX.
//
// [docs/cost.md]: https://github.com/lambdaidem/toolkit/blob/main/docs/cost.md
package dynamostore
