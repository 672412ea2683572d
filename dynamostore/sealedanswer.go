package dynamostore

import (
	"context"
	"errors"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// This file encrypts and decrypts the answers in records; see [Encryption]. A text that is
// encrypted in the form of sealedtext.go is called sealed.

var _ lambdaidem.Preparer = (*Store)(nil)

// Prepare fetches the current key of Options.Encryption, so that the store can encrypt an
// answer later. It implements [lambdaidem.Preparer]. Without encryption it does nothing.
func (s *Store) Prepare(ctx context.Context) error {
	if s.keys == nil {
		return nil
	}
	return s.fetchKey(ctx, opPrepare)
}

const opPrepare = "prepare"

// fetchKey fetches and caches the key that an attempt will use to encrypt its answer. It does
// nothing if the cached key is not older than Encryption.KeyFor. The error is a StoreError for the
// operation op.
func (s *Store) fetchKey(ctx context.Context, op string) error {
	if _, err := s.keys.fresh(ctx); err != nil {
		return keyUnavailable(op, err)
	}
	return nil
}

// sealed reports whether the answer is encrypted.
func (a *apart) sealed() bool {
	return a.Encoding == encodingSealed || a.Encoding == encodingSealedGzip
}

// zipped reports whether the answer is compressed. An answer that is both compressed and
// encrypted must be decrypted first.
func (a *apart) zipped() bool {
	return a.Encoding == encodingGzip || a.Encoding == encodingSealedGzip
}

// purpose returns the part of AES-GCM's associated data that says what was encrypted: the answer's
// encoding, and whether the answer is a value or a failure. Decryption with another purpose fails,
// so nobody can pass an answer off as another kind by changing the record.
func (a *apart) purpose() string {
	if a.Parts.Failure {
		return a.Encoding + " failure"
	}
	return a.Encoding + " value"
}

// sealAnswer encrypts data, an answer that may be compressed, under the current key and returns the
// ciphertext. It changes a.Encoding accordingly, for example from encodingGzip to
// encodingSealedGzip. The error is a StoreError.
func (s *Store) sealAnswer(ctx context.Context, lease lambdaidem.Lease, a *apart, data []byte) ([]byte, error) {
	key, err := s.keys.forSealing(ctx)
	if err != nil {
		return nil, keyUnavailable(opComplete, err)
	}
	if a.zipped() {
		a.Encoding = encodingSealedGzip
	} else {
		a.Encoding = encodingSealed
	}
	return key.seal(lease.ID, lease.Token, a.purpose(), data), nil
}

// openAnswer decrypts the ciphertext of an answer. It does not verify the answer's checksum
// (a.Parts.Checksum), because AES-GCM detects every change to the ciphertext. The error is a
// damagedAnswerError or a keyError.
func (s *Store) openAnswer(ctx context.Context, record lambdaidem.Record, a *apart, ciphertext []byte) ([]byte, error) {
	answer, token, err := s.decryptText(record.ID, a.purpose(), ciphertext, s.findWith(ctx))
	switch {
	case err != nil:
		return nil, err
	case token != record.Token:
		return nil, damaged(errOtherSeal)
	}
	return answer, nil
}

// finder returns the key with the given id, or a keyError.
type finder func(id string) (Key, error)

// findWith returns a finder that returns cached keys, and calls Encryption.Find with ctx for
// other keys.
func (s *Store) findWith(ctx context.Context) finder {
	return func(id string) (Key, error) { return s.keys.byID(ctx, id) }
}

// findCached is a finder. It returns the key with the given id if the key is cached, and otherwise
// a keyError. It never calls Encryption.Find.
func (s *Store) findCached(id string) (Key, error) {
	if k := s.keys.slot(id).last(); k.ID != "" {
		return k, nil
	}
	return Key{}, &keyError{id: id, err: errNotAtHand}
}

// decryptText decrypts an answer of the record with the given id, or the result of a step. The
// parameter purpose says which; see apart.purpose and purposeOfStep. decryptText returns the
// plaintext and the fencing token of the attempt that encrypted it.
//
// The error is a damagedAnswerError if this store can never decrypt the ciphertext, and a keyError
// if the key can't be fetched now.
func (s *Store) decryptText(id, purpose string, ciphertext []byte, find finder) (text []byte, token string, err error) {
	parsed, err := parseSealed(ciphertext)
	if err != nil {
		return nil, "", damaged(err)
	}
	if s.keys == nil {
		return nil, "", damaged(errNoEncryption)
	}
	key, err := find(parsed.keyID)
	switch {
	case errors.Is(err, ErrKeyGone):
		return nil, "", damaged(err)
	case err != nil:
		return nil, "", err
	}
	text, err = parsed.open(key, id, purpose)
	return text, parsed.token, damaged(err)
}

var (
	errNoEncryption = errors.New("it is encrypted, and this store has no Options.Encryption")
	errNotAtHand    = errors.New("nobody has asked for it yet")
	errNotSealed    = errors.New("it is not encrypted, and Options.Encryption.Only is set")
)

// shown returns the record in an item for a caller that does not hold the lease, or the zero Record
// if the item is nil. Such a caller does not need the results of the steps, so shown fetches no
// encryption key: if the results are encrypted under a key that is not cached, the record has only
// the names of the steps.
func (s *Store) shown(itm *item) lambdaidem.Record {
	if itm == nil {
		return lambdaidem.Record{}
	}
	r := s.trusted(itm)
	if itm.sealsSteps() && s.keys != nil {
		if steps, err := s.openSteps(itm, s.findCached); err == nil {
			r.Steps = steps
		}
	}
	return r
}

// decrypted returns the record in an item, with the results of its steps decrypted. The attempt
// that holds the record's lease calls decrypted, because its handler needs the results.
//
// The error is a StoreError whose NotApplied is false: the item is from the reply to a write of the
// attempt. This write, or an earlier try of it, may have been applied.
func (s *Store) decrypted(ctx context.Context, op string, itm *item) (lambdaidem.Record, error) {
	r := s.trusted(itm)
	if len(itm.Steps) == 0 || !itm.sealsSteps() && !s.opts.Encryption.Only {
		return r, nil
	}
	steps, err := s.openSteps(itm, s.findWith(ctx))
	if err == nil {
		r.Steps = steps
		return r, nil
	}
	reason := lambdaidem.ReasonKey
	if _, lost := errors.AsType[*damagedAnswerError](err); lost {
		reason = lambdaidem.ReasonForeign
	}
	return lambdaidem.Record{}, &lambdaidem.StoreError{Op: op, Reason: reason, Err: err}
}
