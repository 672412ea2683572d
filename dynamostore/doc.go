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
//	expiration              N  epoch seconds, the TTL attribute: the record expired an hour before (see below); absent: it does not expire
//	in_progress_expiration  N  epoch milliseconds, the end of the lease
//	validation              S  the request's fingerprint
//	data                    S  the answer, readable in the console; B if it is not UTF-8
//	token                   S  random, of the attempt that wrote last: the fencing token
//	attempt                 N  1 for the first, raised by every takeover
//	outcome                 S  succeeded or failed, once completed
//	scope                   S  what the id was hashed from, readable, without the key
//	started_at              N  epoch milliseconds, when the current attempt began
//	invocation              S  Lambda's request id of the current attempt, which leads to its log; absent outside Lambda
//	last_failure            S  once released: the code of the error, http_ and the status, panic, or the error's Go type
//	bound                   S  downstream_key, dead_attempt or inner_call: why a release keeps the payload; absent: the client may correct it
//	completed_at            N  epoch milliseconds, once completed
//	failure                 M  code, type, message, status: instead of data
//	encoding                S  gzip or plain (over parts), sealed or not: data does not have the answer as it is; steps: there are some
//	parts                   M  of such an answer: count (0: data has it), length, checksum, failure
//	steps                   M  the results of steps by name, until it is completed
//	operations              L  what operators did to the record: what, by, reason, at (epoch milliseconds), attempt, token, forced
//	encrypts                S  the cipher by which the functions encrypt the answer, from the moment the lease is taken; absent where they don't
//	erasing                 M  parts that a purge has yet to delete, as in parts; only while it runs
//	lease_shard             S  while in progress, with Options.LeaseIndex: its partition key there
//
// The first six are named as in Powertools for AWS Lambda, and can be renamed
// by [Options]. A table may be shared with it and with others, a record never:
// an item without our token is refused with [lambdaidem.ReasonForeign], and is
// neither replayed nor overwritten, even when it has expired. Tables with a
// sort key are not supported.
//
// # Expiry and deletion
//
// A record expires when its time to live is over: a request that is made from then
// on finds no record. Its item stays for another hour ([lambdaidem.KeptAfterExpiry]),
// and only then may DynamoDB's TTL delete it: the attribute expiration is an hour
// later than the expiry. Within that hour a request that was made before the expiry
// and was delayed on its way still finds the record, which refuses it.
//
// # Round trips and cost
//
//	first request    PutItem, UpdateItem              1 + KB of the completed item, write units
//	  in parts       and a PutItem for each           and KB of each part, write units
//	replay           PutItem, refused                 KB of the completed item, write units
//	  in parts       and a GetItem for each           and a read unit for each 4 KB of the parts
//	other payload    PutItem, refused                 the same
//	in progress      PutItem, refused                 1 write unit
//	takeover         PutItem, refused; 2 UpdateItem   2 + KB of the completed item, write units
//	step             UpdateItem                       KB of the item with its steps, write units
//	waiting          GetItem for each poll            1 read unit for each 4 KB of the item
//
// KB are rounded up. The units are AWS's rule, not a measurement: a lock is
// below 1 KB, and a refused conditional write consumes by the item that it found.
//
// By the size of an answer's body, with the default options: write units (R: read
// units) of a new request and of a replay, and dollars for a million requests of
// which 5 in 100 are replays, on demand in us-east-1. JSON compresses, noise does
// not. A conflict is 1 write unit. [docs/cost.md] has other options and shares of
// replays, enlisted writes, a plot, and what was measured of it.
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
// A refused PutItem brings the record along (ReturnValuesOnConditionCheckFailure),
// so nothing is read twice, but for the parts of a large answer.
//
// # Large answers
//
// An answer is compressed (gzip) from Options.CompressFrom on, where that saves a
// write unit for certain. What then has more than Options.MaxInline bytes goes
// over items of its own, of 256 KB each, in the same table: they are written
// first, with PutItem, up to four at a time, and the completion names them. A
// replay reads them with consistent GetItems; a conflict and a mismatch read
// none. So a replay never costs the refused write of a large item: at most 21
// write units by default (23 with the longest scopes), and for a larger answer 1
// and a read unit for each 4 KB, a fifth of the price of a write unit on demand.
// See Options.MaxInline for when that pays.
//
//	id          S  the record's, the part's number and a checksum, with # between them
//	data        B  a piece of the answer
//	part        M  record, token, number: whose it is
//	expiration  N  epoch seconds, an hour after its record's; absent if that is
//
// The checksum is SHA-256 over record, token, encoding and answer: a part is
// never overwritten by other bytes, and an answer is the one that was completed,
// every byte of it, or it is not replayed. One that is missing or damaged is
// [lambdaidem.ReasonForeign], which the guard answers with
// [lambdaidem.ErrAnswerUnavailable]; one that can't be read now is a 503. Parts of
// an attempt that died before its completion are found by nothing, and expire.
//
// A table that has just been made on demand takes 4,000 write units a second, and
// one partition of any table 1,000: an answer of 6 MB is 6,000 of them.
//
// A version that does not know an encoding refuses the record with
// [lambdaidem.ReasonForeign]: an answer is never replayed as an empty one. Versions
// before there were encodings refuse every answer that is compressed or in parts.
// Where such versions still run beside this one, or you may go back to one, set
// CompressFrom to math.MaxInt and MaxInline to 384 KB until they don't.
//
// # Attempts
//
// The store has a client of its own, derived from yours, with set attempts,
// backoff and time per attempt; see [Options]. Whether a write happened is
// judged over all attempts on the wire: [lambdaidem.StoreError].NotApplied is
// true only if every single one was refused, or never left.
//
// # Operators
//
// What a person does to records is apart from what a guard does: [Store.Inspect]
// reads one in full, [Store.Operator] releases, settles and purges, and
// [Store.ScanLeases] finds leases where there is no index. All of it goes by the
// database's clock. A version of this package that knows no operations leaves them
// as they are. The command idem has all of it for a terminal.
//
// Requests are sent without the SDK's middleware where your client has nothing that
// would be lost by it: see [Transport] and [Store.Transport].
//
// # Dead leases
//
// An attempt that died leaves a lease that is over, and effects that nobody knows.
// [Store.DeadLeases] finds those leases by an index, Options.LeaseIndex, and without a
// scan. It is off by default: a lock and the end of an attempt each cost a write unit
// more with it.
//
// # Encryption
//
// With [Options].Encryption answers, failures' texts and the results of steps are
// encrypted by this process. Their encodings are "sealed" and "sealed gzip", and
// "sealed steps"; versions that don't know them refuse the record. data, a part's
// data and each step are binaries then, in the form that encryption.go gives. A
// record says by the attribute encrypts, from the moment its lease is taken, that its
// answer will be encrypted.
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
// CheckTable needs dynamodb:DescribeTable and dynamodb:DescribeTimeToLive too, and
// [Store.DeadLeases] dynamodb:Query on the index alone:
// arn:aws:dynamodb:REGION:ACCOUNT:table/TABLE/index/INDEX.
//
// [docs/cost.md]: https://github.com/lambdaidem/toolkit/blob/main/docs/cost.md
package dynamostore
