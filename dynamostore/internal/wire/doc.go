// Package wire sends requests for items to DynamoDB and reports what became of them.
//
// The most dangerous fact in an idempotency store is whether a write was applied. A
// lost reply, a timeout or a connection that was cut leaves it open, and the SDK
// reports only the error of a call's last attempt. Package wire watches every attempt
// and returns a [Fate] beside the error.
//
// [Client.Do] sends a [Request], which is encoded once: every attempt has the same
// bytes, whichever transport carries it. [Watch] watches a call of the SDK's
// own typed client, for operations that are not worth an encoding of their own.
//
// A [First] makes the first attempt of a call without the SDK's middleware. Whatever it
// cannot finish goes on through the SDK's client, which takes that attempt for its own
// first one, so there is one retry loop, one retry quota and one reading of errors.
package wire
