package dynamostore

import (
	"context"
	"errors"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Answers that are encrypted: see [Encryption].

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

// sealed reports whether the answer is encrypted.
func (a *apart) sealed() bool {
	return a.Encoding == encodingSealed || a.Encoding == encodingSealedGzip
}

// zipped reports whether it is compressed.
func (a *apart) zipped() bool {
	return a.Encoding == encodingGzip || a.Encoding == encodingSealedGzip
}

// place returns what an encrypted answer is bound to, besides its record and its attempt.
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
	answer, token, err := s.opened(record.ID, a.place(), stored, s.asking(ctx))
	switch {
	case err != nil:
		return nil, err
	case token != record.Token:
		return nil, damaged(errOtherSeal)
	}
	return answer, nil
}

// finder is where the key of an id is had from.
type finder func(id string) (Key, error)

// asking finds keys wherever they are.
func (s *Store) asking(ctx context.Context) finder {
	return func(id string) (Key, error) { return s.keys.byID(ctx, id) }
}

// atHand finds those that are remembered, and asks nobody.
func (s *Store) atHand(id string) (Key, error) {
	if k := s.keys.slot(id).last(); k.ID != "" {
		return k, nil
	}
	return Key{}, &keyError{id: id, err: errNotAtHand}
}

// opened decrypts a text of a record, and says whose token it has. The error is a
// damagedAnswerError for one that can't be decrypted, ever; a keyError for one that
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

// mayBeOpen refuses what is not encrypted where all should be.
func (s *Store) mayBeOpen(a *apart) error {
	if s.opts.Encryption.Only && !a.sealed() {
		return damaged(errNotSealed)
	}
	return nil
}

// shown returns an item as the guard sees it: see trusted. It has of encrypted steps the
// names alone, unless their keys are at hand: what merely stands in the way is no
// reason to ask for one. It is the zero Record where there is no item.
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

// trusted returns the item's record, without an answer that should be encrypted and is not.
func (s *Store) trusted(it *item) lambdaidem.Record {
	r := it.record()
	if !s.opts.Encryption.Only || r.State != lambdaidem.Completed || r.Result.Apart != nil {
		return r
	}
	if it.isErased() { // a purge has no key; what it wrote is ours to say, and nobody else's
		r.Result.Failure = lambdaidem.NoAnswer("the answer was erased, or was never kept")
		return r
	}
	r.Result.Value, r.Result.Failure, r.Result.Apart = nil, nil, &apart{Encoding: encodingPlain}
	return r
}

// held returns the item of a record whose lease is the caller's, with its steps decrypted:
// they are what its handler goes on after. The error is a StoreError whose NotApplied is
// false, because the lease was taken.
func (s *Store) held(ctx context.Context, op string, it *item) (lambdaidem.Record, error) {
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
