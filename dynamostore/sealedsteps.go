package dynamostore

import (
	"context"
	"fmt"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// This file encrypts and decrypts the results of steps; see [Encryption]. Each result is
// encrypted separately and bound to its record and the name of its step. Each save encrypts
// all results of the record again. An encrypted result contains the fencing token of the
// attempt that saved it.

// sealsSteps reports whether the item's steps are encrypted.
func (itm *item) sealsSteps() bool { return itm.Encoding.isSet && itm.Encoding.s == sealedSteps }

// purposeOfStep returns the part of AES-GCM's associated data that names the step.
// Decryption with another name fails, so nobody who can write to the table can swap the
// results of two steps.
func purposeOfStep(name string) string { return "step " + name }

// sealSteps returns a copy of steps with each result encrypted under the current key and bound to
// the item's record. The error is a StoreError.
func (s *Store) sealSteps(ctx context.Context, itm *item, steps lambdaidem.Steps) (lambdaidem.Steps, error) {
	key, err := s.keys.forSealing(ctx)
	if err != nil {
		return nil, keyUnavailable(opSaveSteps, err)
	}
	encrypted := make(lambdaidem.Steps, len(steps))
	for name, result := range steps {
		encrypted[name] = key.seal(itm.ID, itm.Token, purposeOfStep(name), result)
	}
	return encrypted, nil
}

// needsResealing reports whether the item's steps should be stored again under the current key. It
// returns true if the store encrypts, and the result of a step is in plain text or encrypted under
// another key.
func (s *Store) needsResealing(itm *item) bool {
	if s.keys == nil || len(itm.Steps) == 0 {
		return false
	}
	if !itm.sealsSteps() {
		return true
	}
	current := s.keys.current.last().ID
	for _, ciphertext := range itm.Steps {
		if parsed, err := parseSealed(ciphertext); err != nil || parsed.keyID != current {
			return true
		}
	}
	return false
}

// resealSteps encrypts the steps of an item under the current key and stores them in DynamoDB.
// Without it, a record could need an old key long after the guard's TTL, because each attempt
// extends the life of its record.
//
// resealSteps ignores errors: the attempt can run, because it already has the decrypted steps, and
// the next attempt tries again.
func (s *Store) resealSteps(ctx context.Context, itm *item, steps lambdaidem.Steps, now time.Time) {
	newItm, err := s.itemWithSteps(ctx, itm.ID, itm.Token, steps)
	if err != nil {
		return
	}
	// Ignore the error: if the attempt has lost its lease, its next write fails and reports the
	// loss.
	_, _ = s.update(ctx, &s.writes.resealing, newItm, given{now: now, token: itm.Token, steps: integer{int64(len(steps)), true}})
}

// openSteps returns the item's steps with their results decrypted. The error is a
// damagedAnswerError or a keyError, and names the step.
func (s *Store) openSteps(itm *item, find finder) (lambdaidem.Steps, error) {
	if !itm.sealsSteps() {
		return nil, damaged(fmt.Errorf("the record's steps: %w", errNotSealed))
	}
	steps := make(lambdaidem.Steps, len(itm.Steps))
	for name, ciphertext := range itm.Steps {
		result, _, err := s.decryptText(itm.ID, purposeOfStep(name), ciphertext, find)
		if err != nil {
			return nil, fmt.Errorf("step %q: %w", name, err)
		}
		steps[name] = result
	}
	return steps, nil
}

// namesOf returns a copy of steps with every result set to nil. A record whose results are still
// encrypted shows only the names of its steps.
func namesOf(steps lambdaidem.Steps) lambdaidem.Steps {
	names := make(lambdaidem.Steps, len(steps))
	for name := range steps {
		names[name] = nil
	}
	return names
}
