// Package lambdaidem makes AWS Lambda handlers safe to retry.
//
// A client times out and sends its POST again; a queue redelivers; Lambda
// retries. A [Guard] wraps a handler so that the second one does no harm: it
// gets the first answer again.
//
//	guard := lambdaidem.New(dynamostore.New(client, "idempotency"))
//	lambda.Start(guard.APIGatewayV2(createPayment))
//
// The client names each operation with a header of its own choice:
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
//	a caller like any other           403
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
// Every attempt holds a lease and a fencing token of its own. It can complete
// or release the record only while its token stands there, so an attempt that
// was paused, or whose writes come late, can't overwrite what a later one did.
//
// # What is promised
//
// A completed record never changes, and every replay equals the first stored
// answer. While clocks differ by no more than Options.MaxSkew and handlers end
// when their context does, at most one attempt runs at a time. After a crash
// in the middle of a handler nobody can know what it did outside: policy
// [Rerun] runs it again (at least once), policy [Hold] does not (at most once).
// [Attempt] tells a handler that it is not the first, [RecordID] gives it an id
// that is the same in every attempt, and [Key] the client's own key. A [Step] of a
// handler that is run again is not; [DownstreamKey] makes a key of its own for each
// service that the handler calls.
//
// # Parts
//
//   - The decorators: [Guard.APIGateway], [Guard.APIGatewayV2],
//     [Guard.FunctionURL], [Guard.ALB], [Guard.Middleware] for net/http,
//     [Handler] for any typed Lambda handler, [Do] for any function; for messages
//     [Guard.SQS], [Guard.SNS], [Guard.EventBridge], [Guard.Kinesis] and
//     [Guard.DynamoDBStream].
//   - [Step] and [DownstreamKey], for handlers of several outside effects.
//   - [Options], with the default of each in its comment.
//   - What a handler can say: [Reject], [Permanent], [Uncertain], [Retryable].
//   - [Store], and its implementations: package dynamostore on DynamoDB, package
//     memstore in memory. Package storetest holds what both must pass.
//   - [Observer]: one event for each outcome. [Guard.RecordID] leads from a key
//     to its record.
//   - Package idemtest, for tests of your own handlers.
//
// Comments cite rules by short names (L3, X4). Each stands for one promise,
// which docs/correctness.md has in a line, and is proved by the tests that bear
// its name.
package lambdaidem
