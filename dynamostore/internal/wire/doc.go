// Package wire sends requests to DynamoDB and reports whether their writes were applied.
//
// One call may send its request several times. Each time the request is sent is an attempt. If a
// response is lost, the caller must know whether an attempt may have been applied, but the SDK
// returns only the error of the last attempt. Package wire observes every attempt and returns a
// [Fate] in addition to the error.
//
// [Client.Do] sends a [Request], whose body is encoded once, so every attempt sends the same bytes.
// [Watch] observes a call of the SDK's typed client, for operations that are too rare to be worth
// encoding by hand.
//
// A [DirectTransport] makes the first attempt of a call without the SDK's middleware, which is
// faster. If that attempt does not settle the call, the SDK's client continues and treats the
// attempt as its own first attempt. So the SDK alone decides about retries: there is one retry
// loop, one retry quota and one interpretation of errors.
package wire
