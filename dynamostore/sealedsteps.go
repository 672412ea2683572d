package dynamostore

import (
	"context"
	"fmt"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// This file encrypts and decrypts the results of steps; see [Encryption]. Each result is
// encrypted alone and bound to the name of its step. A save encrypts all of them again, with the
// token of its attempt.

// sealsSteps reports whether the item's steps are encrypted.
func (it *item) sealsSteps() bool { return it.Encoding.there && it.Encoding.s == sealedSteps }

// placeOfStep returns a text that an encrypted step is bound to, in addition to its record.
func placeOfStep(name string) string { return "step " + name }

// sealSteps returns the steps encrypted for an item. The error is a StoreError.
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

// sealsOtherwise reports whether the store encrypts, and the item has a step that is in
// plain text or encrypted under another key than the current one.
func (s *Store) sealsOtherwise(it *item) bool {
	if s.keys == nil || len(it.Steps) == 0 {
		return false
	}
	if !it.sealsSteps() {
		return true
	}
	current := s.keys.current.last().ID
	for _, stored := range it.Steps {
		if of, err := parseSealed(stored); err != nil || of.keyID != current {
			return true
		}
	}
	return false
}

// resealSteps stores steps, those of the record it, encrypted under the current key. Each
// attempt extends the life of its record, so without resealSteps the key that encrypted a
// step first could be needed long after the guard's TTL.
//
// Errors are ignored, because the attempt has the decrypted steps and can run. The next
// attempt encrypts the steps if this one could not. If the attempt has lost its lease, its
// next write fails.
func (s *Store) resealSteps(ctx context.Context, it *item, steps lambdaidem.Steps, now time.Time) {
	ours := &item{ID: it.ID, Token: it.Token}
	if s.keepSteps(ctx, ours, steps) != nil {
		return
	}
	_, _ = s.update(ctx, &s.writes.resealing, ours, given{now: now, token: it.Token, steps: integer{int64(len(steps)), true}})
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

// namesOf returns steps without their results.
func namesOf(steps lambdaidem.Steps) lambdaidem.Steps {
	names := make(lambdaidem.Steps, len(steps))
	for name := range steps {
		names[name] = nil
	}
	return names
}
