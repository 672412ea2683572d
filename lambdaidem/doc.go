// Package lambdaidem makes AWS Lambda handlers safe to retry.
//
// A client times out and sends its POST again; a queue redelivers a message; Lambda
// retries an invocation. A [Guard] wraps a handler so that the repeated request does not
// run the handler again, but receives the first answer.
//
//	guard := lambdaidem.New(dynamostore.New(client, "idempotency"))
//	lambda.Start(guard.APIGatewayV2(createPayment))
//
// The client chooses a key for each operation and sends it in a header:
//
//	Idempotency-Key: 0d1d9c5e-6f0a-4c5e-9d0e-7a2f6f1f7b11
//
// # What a request gets
//
//	first with its key                the handler's answer
//	again, same payload               the first answer, X-Idempotency-Replayed: true
//	again, while the first one runs   409 and Retry-After, or it waits (Options.Wait)
//	same key, other payload           422
//	no key, malformed key             400
//	caller not identifiable           403
//	after a 5xx, an error, a panic    the handler runs again, as attempt 2
//	the store can't be reached        503 and Retry-After; the handler does not run
//
// # The life of a record
//
// A record stands for one key of one caller on one route of one function.
//
//	          acquire                    complete
//	absent ────────────► in progress ──────────────► completed, failed
//	   ▲                  │   ▲   │                        │
//	   │          release │   │   │ the attempt died:      │ expires
//	   │                  ▼   │   │ its lease ends         │
//	   │              released┘   └──► policy Rerun: the next request takes over
//	   │                 acquire       policy Hold: 409 until an operator decides
//	   └───────────────────────────────────────────────────┘
//
// Every attempt, which is one run of the handler, has a lease and a random fencing
// token. It can complete or release the record only while the record has that token, so
// an attempt that was paused, or whose writes arrive late, can't overwrite the result of
// a later attempt.
//
// # What is promised
//
// A completed record never changes, and every replay equals the first stored answer.
// At most one attempt for a record runs at a time, provided that clocks differ by no
// more than Options.MaxSkew and handlers return when their context ends. If a process
// crashes in the middle of a handler, nobody can know which other services the handler
// has called. Under policy [Rerun] the handler then runs again, so that its effects
// happen at least once. Under policy [Hold] it does not, so that they happen at most
// once.
//
// In a handler, [Attempt] returns the number of the attempt, [RecordID] an id that is
// the same in every attempt, and [Key] the key that the client sent. A [Step] whose
// result is stored is skipped when the handler runs again. [DownstreamKey] returns a key
// for a call to another service, which is the same in every attempt.
//
// # Parts
//
//   - Functions that guard a handler: [Guard.APIGateway], [Guard.APIGatewayV2],
//     [Guard.FunctionURL], [Guard.ALB], [Guard.Middleware] for net/http,
//     [Handler] for any typed Lambda handler, [Do] for any function; for messages
//     [Guard.SQS], [Guard.SNS], [Guard.EventBridge], [Guard.Kinesis] and
//     [Guard.DynamoDBStream].
//   - [Step] and [DownstreamKey], for handlers that call several other services.
//   - [Options], with the default of each in its comment.
//   - Errors that a handler can return: [Reject], [Permanent], [Uncertain],
//     [Retryable].
//   - [Store], and its implementations: package dynamostore on DynamoDB, package
//     memstore in memory. Package storetest tests a Store.
//   - [Observer], which receives an event for each outcome. [Guard.RecordID] returns
//     the id of the record for a key.
//   - Package idemtest, for tests of your own handlers.
//
// Some comments cite a rule by a short name such as L3 or X4. The file
// docs/correctness.md lists the rules. The tests of a rule have its name in theirs.
package lambdaidem
