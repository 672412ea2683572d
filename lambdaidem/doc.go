// Package lambdaidem makes AWS Lambda handlers safe to retry.
//
// A client times out and sends its POST again. A queue delivers a message again. Lambda
// retries an invocation. A [Guard] wraps a handler and stores its answer as a record. When
// the request is repeated, the guard returns the stored answer and does not run the
// handler again.
//
//	guard := lambdaidem.New(dynamostore.New(client, "idempotency"))
//	lambda.Start(guard.APIGatewayV2(createPayment))
//
// The client chooses a key for each operation, and sends the same key with every retry of
// that operation:
//
//	Idempotency-Key: 0d1d9c5e-6f0a-4c5e-9d0e-7a2f6f1f7b11
//
// # Guarding a handler
//
// [New] makes a guard from a [Store] and [Options]. Choose the method or function for your
// kind of handler:
//
//   - HTTP events: [Guard.APIGateway] for REST APIs, [Guard.APIGatewayV2] for HTTP APIs,
//     [Guard.APIGatewayWebSocket], [Guard.FunctionURL] and [Guard.ALB].
//   - net/http: [Guard.Middleware].
//   - Messages and stream records: [Guard.SQS], [Guard.SNS], [Guard.EventBridge],
//     [Guard.Kinesis], [Guard.DynamoDBStream], [Guard.Kafka], [Guard.S3],
//     [Guard.ActiveMQ], [Guard.RabbitMQ] and [Guard.DocumentDB], with [BatchOptions].
//   - Any other typed Lambda handler: [Handler].
//   - Any function, also inside a guarded handler: [Do].
//
// If the key is not in a header, set Options.Key or BatchOptions.Key. [HashKey] makes a
// key from several values. Package jmeskey makes one from a JMESPath expression.
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
// These are the defaults. [Code] lists the errors of the guard.
//
// # Errors that a handler returns
//
// By default, a response with a status of 200 to 499 is stored and replayed, except 408,
// 425 and 429. After any other response and after an error, the record is released, and a
// retry runs the handler again. Under policy [Hold], a 5xx and an error leave the record
// to an operator instead. A handler decides otherwise by the error that it returns:
//
//   - [Reject] answers with a 4xx or 5xx and a code, such as 402.
//   - [Permanent] stores an error, because every retry would fail the same way.
//   - [Uncertain] says that the handler may have had its effect.
//   - [Retryable] says that nothing happened.
//
// Options.Outcome changes which responses are stored.
//
// # Effects of a handler
//
// If a process crashes in the middle of a handler, nobody can know which other services
// the handler has called. [Policy] decides what happens next. Under [Rerun], the default,
// the next request runs the handler again, so the effects happen at least once. Under
// [Hold], the record waits for an operator, so they happen at most once.
//
//   - Writes to DynamoDB happen exactly once for a record if the handler enlists them
//     (dynamostore.Enlist). They are committed in the transaction that stores the answer.
//   - [Step] stores the result of a call to another service. A handler that runs again
//     skips the step.
//   - [DownstreamKey] returns an idempotency key for a call to another service. It is the
//     same in every attempt.
//   - [RecordID] returns an id that is the same in every attempt, [Attempt] the number of
//     the attempt, and [Key] the key that the client sent.
//
// # The life of a record
//
// A record belongs to one key of one caller on one route of one function.
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
// Every attempt, which is one run of the handler, has a lease and a random fencing token.
// An attempt can complete or release the record only while the record has its token. An
// attempt that was paused, or whose writes arrive late, therefore can't overwrite the
// result of a later attempt.
//
// # Guarantees
//
// A completed record never changes, and every replay equals the first stored answer.
//
// At most one attempt for a record runs at a time, provided that clocks differ by no more
// than Options.MaxSkew and handlers return when their context ends.
//
// The file docs/correctness.md lists all guarantees, and the tests that check each.
//
// # Testing and operating
//
//   - Package idemtest tests your own guarded handlers. Package memstore is a store in
//     memory.
//   - [Observer] receives an event for each outcome. Packages emf and otelobserver turn
//     the events into metrics.
//   - [Guard.RecordID] returns the id of the record for a key.
//   - [Store] is the interface to implement for another database. Package storetest tests
//     an implementation.
package lambdaidem
