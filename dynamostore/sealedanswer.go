package dynamostore

import (
	"context"
	"errors"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// This file encrypts and decrypts answers; see [Encryption].

var _ lambdaidem.Preparer = (*Store)(nil)

// Prepare fetches the key of Options.Encryption. Without encryption it does nothing.
func (s *Store) Prepare(ctx context.Context) error {
	if s.keys == nil {
		return nil
	}
	return s.haveKey(ctx, opPrepare)
}

const opPrepare = "prepare"

// haveKey fetches the key with which an attempt will encrypt its answer. The error is a
// StoreError.
func (s *Store) haveKey(ctx context.Context, op string) error {
	if _, err := s.keys.fresh(ctx); err != nil {
		return noKey(op, err)
	}
	return nil
}

// sealed reports whether the answer is encrypted.
func (a *apart) sealed() bool {
	return a.Encoding == encodingSealed || a.Encoding == encodingSealedGzip
}

// zipped reports whether it is compressed.
func (a *apart) zipped() bool {
	return a.Encoding == encodingGzip || a.Encoding == encodingSealedGzip
}

// place returns a text that an encrypted answer is bound to, in addition to its record and its
// attempt. Decryption fails in another place.
func (a *apart) place() string {
	if a.Parts.Failure {
		return a.Encoding + " failure"
	}
	return a.Encoding + " value"
}

// sealAnswer encrypts an answer's bytes and sets the answer's encoding. The error is a
// StoreError.
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

// openAnswer decrypts the stored bytes of an answer. Decryption also detects damage, so the
// checksum is not compared.
func (s *Store) openAnswer(ctx context.Context, record lambdaidem.Record, a *apart, stored []byte) ([]byte, error) {
	answer, token, err := s.opened(record.ID, a.place(), stored, s.asking(ctx))
	switch {
	case err != nil:
		return nil, err
	case token != record.Token:
		return nil, damaged(errOtherSeal)
	}
	return answer, nil
}

// finder returns the key with an id.
type finder func(id string) (Key, error)

// asking returns a finder that calls Encryption.Find for keys that are not cached.
func (s *Store) asking(ctx context.Context) finder {
	return func(id string) (Key, error) { return s.keys.byID(ctx, id) }
}

// atHand is a finder of cached keys only.
func (s *Store) atHand(id string) (Key, error) {
	if k := s.keys.slot(id).last(); k.ID != "" {
		return k, nil
	}
	return Key{}, &keyError{id: id, err: errNotAtHand}
}

// opened decrypts a text of a record, and returns the token of the attempt that encrypted it.
// The error is a damagedAnswerError if the text can never be decrypted, and a keyError if it
// may be later.
func (s *Store) opened(id, place string, stored []byte, find finder) (text []byte, token string, err error) {
	of, err := parseSealed(stored)
	if err != nil {
		return nil, "", damaged(err)
	}
	if s.keys == nil {
		return nil, "", damaged(errNoEncryption)
	}
	key, err := find(of.keyID)
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
	errNotAtHand    = errors.New("nobody has asked for it yet")
	errNotSealed    = errors.New("it is not encrypted, and Options.Encryption.Only is set")
)

// mayBeOpen returns an error if an answer is not encrypted although Encryption.Only is set.
func (s *Store) mayBeOpen(a *apart) error {
	if s.opts.Encryption.Only && !a.sealed() {
		return damaged(errNotSealed)
	}
	return nil
}

// shown returns the record of an item whose lease is not the caller's; the zero Record if it is
// nil. Encrypted steps have their names only, unless the keys are cached: a record that only
// refuses the caller is no reason to fetch a key.
func (s *Store) shown(it *item) lambdaidem.Record {
	if it == nil {
		return lambdaidem.Record{}
	}
	r := s.trusted(it)
	if it.sealsSteps() && s.keys != nil {
		if steps, err := s.openSteps(it, s.atHand); err == nil {
			r.Steps = steps
		}
	}
	return r
}

// trusted returns the item's record. If Encryption.Only is set, an answer that is not encrypted
// is left out.
func (s *Store) trusted(it *item) lambdaidem.Record {
	r := it.record()
	if !s.opts.Encryption.Only || r.State != lambdaidem.Completed || r.Result.Apart != nil {
		return r
	}
	if it.isErased() { // by a purge, which has no key; don't trust the text that is stored
		r.Result.Failure = lambdaidem.NoAnswer("the answer was erased, or was never kept")
		return r
	}
	r.Result.Value, r.Result.Failure, r.Result.Apart = nil, nil, &apart{Encoding: encodingPlain}
	return r
}

// decrypted returns the record of an item whose lease is the caller's, with its steps
// decrypted for the handler. The error is a StoreError whose NotApplied is false, because the
// lease was taken.
func (s *Store) decrypted(ctx context.Context, op string, it *item) (lambdaidem.Record, error) {
	r := s.trusted(it)
	if len(it.Steps) == 0 || !it.sealsSteps() && !s.opts.Encryption.Only {
		return r, nil
	}
	steps, err := s.openSteps(it, s.asking(ctx))
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
