package dynamostore

import (
	"context"
	"fmt"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Steps that are encrypted (S1): see [Encryption]. Each is by itself, bound to its
// name; a save writes them all anew, under the token of its attempt.

// sealsSteps tells whether the item's steps are encrypted.
func (it *item) sealsSteps() bool { return it.Encoding.there && it.Encoding.s == sealedSteps }

// placeOfStep is what an encrypted step is bound to, besides its record.
func placeOfStep(name string) string { return "step " + name }

// sealSteps is steps as an item is to keep them. The error is a StoreError.
func (s *Store) sealSteps(ctx context.Context, it *item, steps lambdaidem.Steps) (lambdaidem.Steps, error) {
	key, err := s.keys.forSealing(ctx)
	if err != nil {
		return nil, noKey(opSaveSteps, err)
	}
	stored := make(lambdaidem.Steps, len(steps))
	for name, result := range steps {
		stored[name] = key.seal(it.ID, it.Token, placeOfStep(name), result)
	}
	return stored, nil
}

// openSteps decrypts an item's steps. The error is a damagedAnswerError, or a
// keyError.
func (s *Store) openSteps(it *item, find finder) (lambdaidem.Steps, error) {
	if !it.sealsSteps() {
		return nil, damaged(fmt.Errorf("the record's steps: %w", errNotSealed))
	}
	steps := make(lambdaidem.Steps, len(it.Steps))
	for name, stored := range it.Steps {
		result, _, err := s.opened(it.ID, placeOfStep(name), stored, find)
		if err != nil {
			return nil, fmt.Errorf("step %q: %w", name, err)
		}
		steps[name] = result
	}
	return steps, nil
}

// namesOf is steps without their results.
func namesOf(steps lambdaidem.Steps) lambdaidem.Steps {
	names := make(lambdaidem.Steps, len(steps))
	for name := range steps {
		names[name] = nil
	}
	return names
}
