// Package propagate puts idempotency keys on the messages and requests that a guarded
// handler sends, so that their receivers can recognize duplicates.
//
// A handler that runs again after a crash sends its messages again. The packages below
// add a key to an outgoing message. The key is the same in every attempt. A consumer that
// has a guard too therefore recognizes the second message as a duplicate of the first.
//
//	sqskey    Amazon SQS: the message attribute x-idempotency-key
//	snskey    Amazon SNS: the message attribute x-idempotency-key
//	eventkey  Amazon EventBridge: the member x-idempotency-key of the event's detail
//	httpkey   HTTP: the header Idempotency-Key
//
// They are separate packages so that a program links only the SDK clients that it uses.
// Their functions change the message in place. Call them last, right before the message
// is sent. A function that returns an error has changed nothing. If a message has a map
// of attributes or headers, the functions replace it by a copy and never write to it.
//
// # The key
//
// The key is the [lambdaidem.DownstreamKey] of the handler's context and of a name that
// the caller gives to the message, such as "receipt". Each message of a handler needs its
// own name. If two messages have the same name, they have the same key, and the consumer
// drops the second one as a duplicate.
//
// A name must be the same in each attempt. So it must not depend on the time, on random
// numbers, or on the iteration order of a map. In a loop, build the name from the subject
// of the message: "invoice/" + invoice.ID.
//
// A handler that runs without a guard has no such key. The functions then return
// [ErrUnguarded], because a consumer could not recognize the duplicates of a message
// without a key.
//
// The functions whose names end in WithKey take a key instead of a name, and need no
// guarded handler. The key must have 1 to 255 printable ASCII characters, and no space at
// either end.
//
// If the message already has a key with the same value, it is not changed, whatever the
// capitalization of the key's name. If the message already has another key, the functions
// return [ErrOtherKey].
package propagate

import (
	"context"
	"errors"
	"fmt"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Attribute is the name of the SQS or SNS message attribute, or of the member of an
// EventBridge event's detail, that contains the key. A consumer's guard reads the key from
// there.
const Attribute = "x-idempotency-key"

var (
	// ErrUnguarded means that the context is not the context of a guarded handler. So
	// there is no key that would be the same in a retry.
	ErrUnguarded = errors.New("propagate: not in a guarded handler, so there is no downstream key; a WithKey function takes one from elsewhere")
	// ErrOtherKey means that the message already has a different key, or already has
	// the key more than once.
	ErrOtherKey = errors.New("propagate: there is another key already")
)

// Key returns the key for the message or request that a guarded handler sends under the
// given name. ctx is the handler's context. Key returns [ErrUnguarded] if ctx is not the
// context of a guarded handler.
func Key(ctx context.Context, name string) (string, error) {
	key := lambdaidem.DownstreamKey(ctx, name)
	if key == "" {
		return "", ErrUnguarded
	}
	return key, nil
}

// Check returns an error unless key is valid: 1 to 255 printable ASCII characters, and no
// space at either end.
func Check(key string) error {
	if err := lambdaidem.PrintableKey(key); err != nil {
		return fmt.Errorf("propagate: the key is invalid: %w", err)
	}
	return nil
}
