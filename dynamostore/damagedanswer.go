package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// loadError returns the StoreError for an answer that could not be loaded because of err. If err
// says that the answer is damaged, the Reason is ReasonForeign, because this store can never read
// the answer. After any other err, or if the record has changed since it was read, the failure is
// temporary.
func (s *Store) loadError(ctx context.Context, record lambdaidem.Record, a *apart, err error) error {
	lost := (*damagedAnswerError)(nil)
	if !errors.As(err, &lost) {
		if _, ok := errors.AsType[*keyError](err); ok {
			return keyUnavailable(opLoad, err)
		}
		return err // a StoreError
	}
	if a.Parts.Count > 0 {
		// A part may seem damaged only because the record was purged, or because it expired and was
		// acquired by another attempt. So read the record again.
		now, unread := s.read(ctx, opLoad, record.ID)
		if unread != nil && !isForeign(unread) {
			return unread
		}
		if unread == nil && (now == nil || !now.names(a)) {
			return &lambdaidem.StoreError{Op: opLoad, NotApplied: true, Err: fmt.Errorf("the record changed while its answer was read: %w", lost)}
		}
	}
	return &lambdaidem.StoreError{Op: opLoad, Reason: lambdaidem.ReasonForeign, NotApplied: true, Err: lost}
}

// names reports whether the item refers to the answer, which means that both have the same
// checksum. A checksum covers the attempt's token, so it is the same only if the item and the
// answer come from the same attempt.
func (itm *item) names(answer *apart) bool {
	return itm.Parts != nil && bytes.Equal(itm.Parts.Checksum, answer.Parts.Checksum)
}

// damagedAnswerError is the error for an answer, or a result of a step, that this store can never
// read. The possible causes are:
//
//   - The stored bytes are missing or were changed.
//   - The key that encrypted the bytes no longer exists.
//   - The bytes are not encrypted, although Options.Encryption.Only is set.
//   - The bytes are encrypted, although Options.Encryption is not set.
type damagedAnswerError struct{ err error }

func (e *damagedAnswerError) Error() string {
	return "this store can't read what is stored: " + e.err.Error()
}
func (e *damagedAnswerError) Unwrap() error { return e.err }

// damaged returns err as a damagedAnswerError, or nil if err is nil.
func damaged(err error) error {
	if err == nil {
		return nil
	}
	return &damagedAnswerError{err}
}
