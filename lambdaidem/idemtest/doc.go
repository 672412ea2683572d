// Package idemtest helps you to test that your own handlers are safe to retry.
// It needs no database, and no test has to sleep.
//
//   - [Twice] and [TwiceHTTP] send one event twice, as a client does that timed
//     out: the second answer must be the first one, without a second run.
//   - [Request] makes events of every HTTP source, with a [Caller] that the
//     gateway vouches for.
//   - [SQS], [SNS], [EventBridge], [Kinesis] and [DynamoDBStream] make events of a
//     [Message].
//   - [Store] loses requests and replies, refuses, hangs, and kills attempts;
//     [Crash] runs what is killed.
//   - [Clock] and [Invocation] are time as a guard and a handler see it, so
//     that a lease can be outlived.
//   - [Recorder] remembers what the guard told its observer.
package idemtest
