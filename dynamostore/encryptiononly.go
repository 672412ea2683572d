package dynamostore

import (
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// trusted returns the record in an item. If Encryption.Only is set, trusted removes an answer in
// plaintext, because anyone who can write to the table could have put it there. The returned
// record is still completed. Its Result.Apart has a value that makes Load fail with
// ReasonForeign.
func (s *Store) trusted(itm *item) lambdaidem.Record {
	r := itm.record()
	if !s.opts.Encryption.Only || r.State != lambdaidem.Completed || r.Result.Apart != nil {
		return r
	}
	if itm.isErased() {
		// This failure says that there is no answer. Accept it, because every store writes it in
		// plaintext. But replace its text, which anyone who can write to the table could have
		// changed.
		r.Result.Failure = lambdaidem.NoAnswer("the answer was erased, or was never kept")
		return r
	}
	r.Result.Value, r.Result.Failure, r.Result.Apart = nil, nil, &apart{Encoding: encodingPlain}
	return r
}

// checkEncrypted returns a damagedAnswerError if an answer is not encrypted although
// Encryption.Only is set.
func (s *Store) checkEncrypted(a *apart) error {
	if s.opts.Encryption.Only && !a.sealed() {
		return damaged(errNotSealed)
	}
	return nil
}
