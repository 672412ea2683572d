// Package idemtest helps you to test that your own handlers are safe to retry.
// It needs no database, and no test has to sleep.
//
//   - [Twice] and [TwiceHTTP] send one event twice, like a client that retries after a
//     timeout. They check that the second response equals the first, and that the handler
//     did not run again.
//   - [Request] builds the event of every HTTP source, with a [Caller] that the gateway
//     has authenticated.
//   - [SQS], [SNS], [EventBridge], [Kinesis] and [DynamoDBStream] build the events of
//     message sources from a [Message].
//   - [Store] makes calls of a store fail: it can lose requests and replies, reject calls,
//     hang, and simulate the death of the process. [Crash] runs a handler that dies.
//   - [Clock] and [Invocation] control the time that a guard and a handler see, so that a
//     test can let a lease end.
//   - [Recorder] records the events that a guard reports to its observer.
package idemtest
