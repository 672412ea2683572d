package attribute

import (
	"errors"
	"fmt"

	"github.com/lambdaidem/toolkit/propagate"
)

// maxDeduplicationID is the maximum length of a MessageDeduplicationId in characters (API
// references of SendMessage and Publish).
const maxDeduplicationID = 128

// DeduplicationID returns the key as a MessageDeduplicationId. have is the message's
// current MessageDeduplicationId, or nil. If it differs from the key, the error is
// propagate.ErrOtherKey. DeduplicationID also returns an error if the key has a space or
// more than 128 characters, because then it is not a valid MessageDeduplicationId.
func DeduplicationID(have *string, key string) (*string, error) {
	if have != nil && *have != key {
		return nil, fmt.Errorf("%w: MessageDeduplicationId", propagate.ErrOtherKey)
	}
	if len(key) > maxDeduplicationID {
		return nil, fmt.Errorf("propagate: the key has %d characters; a MessageDeduplicationId can have at most %d", len(key), maxDeduplicationID)
	}
	for i := range len(key) {
		if key[i] == ' ' { // all other characters of a valid key are allowed
			return nil, errors.New("propagate: the key has a space; a MessageDeduplicationId can't have one")
		}
	}
	return &key, nil
}
