package dynamostore

import (
	"context"
	"errors"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Answers that are encrypted (S1): see [Encryption].

var _ lambdaidem.Preparer = (*Store)(nil)

// Prepare gets the key that [Options].Encryption encrypts with; without it, there is
// nothing to get.
func (s *Store) Prepare(ctx context.Context) error {
	if s.keys == nil {
		return nil
	}
	return s.haveKey(ctx, opPrepare)
}

const opPrepare = "prepare"

// haveKey gets a key for what an attempt will have to keep. The error is a
// StoreError.
func (s *Store) haveKey(ctx context.Context, op string) error {
	if _, err := s.keys.fresh(ctx); err != nil {
		return noKey(op, err)
	}
	return nil
}

// sealed tells whether the answer is encrypted.
func (a *apart) sealed() bool {
	return a.Encoding == encodingSealed || a.Encoding == encodingSealedGzip
}

// zipped tells whether it is compressed.
func (a *apart) zipped() bool {
	return a.Encoding == encodingGzip || a.Encoding == encodingSealedGzip
}

// place is what an encrypted answer is bound to, besides its record and its attempt.
func (a *apart) place() string {
	if a.Parts.Failure {
		return a.Encoding + " failure"
	}
	return a.Encoding + " value"
}

// sealAnswer encrypts the bytes to be stored, and notes it in the answer's encoding.
// The error is a StoreError.
func (s *Store) sealAnswer(ctx context.Context, lease lambdaidem.Lease, a *apart, stored []byte) ([]byte, error) {
	key, err := s.keys.forSealing(ctx)
	if err != nil {
		return nil, noKey(opComplete, err)
	}
	if a.zipped() {
		a.Encoding = encodingSealedGzip
	} else {
		a.Encoding = encodingSealed
	}
	return key.seal(lease.ID, lease.Token, a.place(), stored), nil
}

// openAnswer decrypts the stored bytes of an answer. What the checksum would find,
// the cipher finds.
func (s *Store) openAnswer(ctx context.Context, record lambdaidem.Record, a *apart, stored []byte) ([]byte, error) {
	answer, token, err := s.opened(ctx, record.ID, a.place(), stored)
	switch {
	case err != nil:
		return nil, err
	case token != record.Token:
		return nil, damaged(errOtherSeal)
	}
	return answer, nil
}

// opened decrypts a text of a record, and says whose token it has. The error is a
// damagedAnswerError for one that can't be decrypted, ever; a keyError for one that
// may be later.
func (s *Store) opened(ctx context.Context, id, place string, stored []byte) (text []byte, token string, err error) {
	of, err := parseSealed(stored)
	if err != nil {
		return nil, "", damaged(err)
	}
	if s.keys == nil {
		return nil, "", damaged(errNoEncryption)
	}
	key, err := s.keys.byID(ctx, of.keyID)
	switch {
	case errors.Is(err, ErrKeyGone):
		return nil, "", damaged(err)
	case err != nil:
		return nil, "", err
	}
	text, err = of.open(key, id, place)
	return text, of.token, damaged(err)
}

var (
	errNoEncryption = errors.New("it is encrypted, and this store has no Options.Encryption")
	errNotSealed    = errors.New("it is not encrypted, and Options.Encryption.Only is set")
)

// mayBeOpen refuses what is not encrypted where all should be.
func (s *Store) mayBeOpen(a *apart) error {
	if s.opts.Encryption.Only && !a.sealed() {
		return damaged(errNotSealed)
	}
	return nil
}

// shown is an item as the guard sees it: with its steps decrypted, and without an
// answer that should be encrypted and is not. The error is a StoreError.
func (s *Store) shown(ctx context.Context, v *verdict, it *item) (lambdaidem.Record, error) {
	r := it.record()
	if len(it.Steps) > 0 && (it.sealsSteps() || s.opts.Encryption.Only) {
		var err error
		if r.Steps, err = s.openSteps(ctx, it); err != nil {
			return lambdaidem.Record{}, v.unopened(err)
		}
	}
	if s.opts.Encryption.Only && r.State == lambdaidem.Completed && r.Result.Apart == nil && !it.isErased() {
		r.Result.Value, r.Result.Failure, r.Result.Apart = nil, nil, &apart{Encoding: encodingPlain}
	}
	return r, nil
}

// unopened is the error of a verb that found steps that it can't decrypt. They are
// the record's: without them it is none.
func (v *verdict) unopened(err error) error {
	reason := lambdaidem.ReasonKey
	if _, lost := errors.AsType[*damagedAnswerError](err); lost {
		reason = lambdaidem.ReasonForeign
	}
	return &lambdaidem.StoreError{Op: v.op, Reason: reason, NotApplied: !v.ambiguous, Err: err}
}
