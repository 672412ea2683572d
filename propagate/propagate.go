// Package propagate passes a guarded handler's idempotency on to what it sends:
// whoever consumes the message, or serves the request, sees that a second
// one is a repetition.
//
// A handler that runs again after a crash sends its messages again. Each of the
// packages below puts a key on an outgoing message that is the same in every
// attempt, so that a consumer behind a guard of its own carries it out once:
//
//	sqskey    Amazon SQS: the message attribute x-idempotency-key
//	snskey    Amazon SNS: the same message attribute
//	eventkey  Amazon EventBridge: the member x-idempotency-key of the event's detail
//	httpkey   HTTP: the header Idempotency-Key
//
// They are apart so that a program links only the SDK clients that it uses. Each
// changes what it is given in place, as the last thing before it is sent, and
// nothing at all when it returns an error; maps are replaced, never written to.
//
// # Which key
//
// It is [lambdaidem.DownstreamKey] of the handler's context and of a name that says
// what is sent: "receipt" say. Two messages of one handler need two names, else the
// consumer takes the second one for a repetition of the first and drops it. A name
// must be the same in each attempt: no clock, no random number, no map's order. In a
// loop, make it of what the message is about: "invoice/" + invoice.ID.
//
// Outside of a guarded handler there is no such key. That is [ErrUnguarded] and not
// a message without a key, which would lose the guarantee in silence. The functions
// ending in WithKey take a key that the caller has from elsewhere; it is 1 to 255
// printable ASCII characters without spaces at the ends.
//
// A key of the same value may be there already, whatever the capitalization of its name,
// and stays as it is; another one is [ErrOtherKey].
package propagate

import (
	"context"
	"errors"
	"fmt"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Attribute is the name of the message attribute, and of the member of an event's
// detail, that a consumer's guard reads the key from.
const Attribute = "x-idempotency-key"

var (
	// ErrUnguarded says that the context is not that of a guarded handler, so that
	// there is no key which a retry would have too.
	ErrUnguarded = errors.New("propagate: not in a guarded handler, so there is no downstream key; a WithKey function takes one from elsewhere")
	// ErrOtherKey says that the message has another key already, or the key twice.
	ErrOtherKey = errors.New("propagate: there is another key already")
)

// Key returns the key of what a guarded handler sends under name, or
// [ErrUnguarded].
func Key(ctx context.Context, name string) (string, error) {
	key := lambdaidem.DownstreamKey(ctx, name)
	if key == "" {
		return "", ErrUnguarded
	}
	return key, nil
}

// Check refuses what is no key.
func Check(key string) error {
	if err := lambdaidem.PrintableKey(key); err != nil {
		return fmt.Errorf("propagate: the key is invalid: %w", err)
	}
	return nil
}
