package dynamostore

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// keyring calls the functions Current and Find of an Encryption, and caches the keys that they
// return. A keyring is safe for concurrent use. A nil *keyring means that nothing is encrypted.
type keyring struct {
	encryption Encryption
	current    keySlot // the key to encrypt with; empty before the first call of Current

	mu       sync.Mutex                       // guards the fields below
	byIDs    *simplelru.LRU[string, *keySlot] // the keys to decrypt with, by their ids
	proved   time.Time                        // when the method prove last succeeded
	provedID string                           // the id of the key for which it succeeded
}

const (
	// maxCachedKeys is the maximum number of cached keys for decryption. If keys are
	// rotated every five minutes, the cache has room for the keys of three days. 1000 keys
	// need about 300 KB.
	maxCachedKeys = 1000
	// firstTimeout is the timeout of a call of Encryption.Current or Find if there is no cached key
	// to use instead. Without a timeout, a key service that hangs would block the invocation until
	// Lambda ends it. The value leaves time for the first connection to KMS.
	firstTimeout = 5 * time.Second
	// refreshTimeout is the timeout of a call of Encryption.Current or Find if the cached key can
	// be used when the call fails.
	refreshTimeout = 2 * time.Second
	// refreshPause is a divisor: after a failed refresh, or after ErrKeyGone, the keyring does not
	// fetch the key again for the duration Encryption.KeyFor divided by refreshPause.
	refreshPause = 20
)

// newKeyring returns a keyring without keys, or nil if the given Encryption is zero.
func newKeyring(encryption Encryption) *keyring {
	if encryption.Current == nil {
		return nil
	}
	byIDs, err := simplelru.NewLRU[string, *keySlot](maxCachedKeys, nil)
	if err != nil { // can't happen: the only error is a size below 1
		panic(err)
	}
	return &keyring{encryption: encryption, byIDs: byIDs}
}

// fresh returns the key to encrypt with. It calls Encryption.Current if no key is cached, or if the
// cached key is older than the duration Encryption.KeyFor. The error is a keyError.
func (r *keyring) fresh(ctx context.Context) (Key, error) {
	k, err := r.current.get(ctx, r.encryption.KeyFor, r.callCurrent)
	if err != nil {
		return Key{}, &keyError{err: err}
	}
	return k, nil
}

// forSealing returns the key to encrypt an answer with, after the handler has run. It returns the
// cached key, even if the key is older than KeyFor: a call of Current could fail, and the answer
// could then not be stored. It calls Current only if no key is cached. The error is a keyError.
func (r *keyring) forSealing(ctx context.Context) (Key, error) {
	if k := r.current.last(); k.ID != "" {
		return k, nil
	}
	return r.fresh(ctx)
}

// callCurrent calls Current and checks the key that it returns. It also caches the key for
// decryption.
func (r *keyring) callCurrent(ctx context.Context) (Key, error) {
	k, err := r.encryption.Current(ctx)
	if err != nil {
		return Key{}, err
	}
	if problem := k.problem(); problem != "" {
		return Key{}, errors.New("Options.Encryption.Current returned a key that is none: " + problem)
	}
	k = k.clone()
	slot := r.slot(k.ID) // so that this process does not call Find for a key that it already has
	slot.mu.Lock()
	slot.key, slot.fetchedAt, slot.goneErr = k, time.Now(), nil
	slot.mu.Unlock()
	return k, nil
}

// byID returns the key with the given id for decryption. It calls Encryption.Find if the key is not
// cached, or if the cached key is older than the duration Encryption.KeyFor. The error is a
// keyError, which wraps ErrKeyGone if the key no longer exists.
func (r *keyring) byID(ctx context.Context, id string) (Key, error) {
	k, err := r.slot(id).get(ctx, r.encryption.KeyFor, func(ctx context.Context) (Key, error) { return r.callFind(ctx, id) })
	if err != nil {
		return Key{}, &keyError{id: id, err: err}
	}
	return k, nil
}

// callFind calls Find and checks the key that it returns. It does not use the cache.
func (r *keyring) callFind(ctx context.Context, id string) (Key, error) {
	k, err := r.encryption.Find(ctx, id)
	switch {
	case err != nil:
		return Key{}, err
	case k.ID != id:
		return Key{}, fmt.Errorf("Options.Encryption.Find returned %s", k)
	}
	if problem := k.problem(); problem != "" {
		return Key{}, errors.New("Options.Encryption.Find returned a key that is none: " + problem)
	}
	return k.clone(), nil
}

// slot returns the cache entry for the decryption key with the given id. If there is none, slot
// adds an empty one, which may evict the entry that was used least recently.
func (r *keyring) slot(id string) *keySlot {
	r.mu.Lock()
	defer r.mu.Unlock()
	slot, ok := r.byIDs.Get(id)
	if !ok {
		slot = &keySlot{mayBeGone: true}
		r.byIDs.Add(id, slot)
	}
	return slot
}

// prove returns an error unless Find returns the same key as Current. This process encrypts with
// the key of Current, and other processes decrypt with the key of Find. After a success, prove does
// not call Find again for the duration Encryption.KeyFor.
func (r *keyring) prove(ctx context.Context) error {
	k, err := r.fresh(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	known := r.provedID == k.ID && time.Since(r.proved) < r.encryption.KeyFor
	r.mu.Unlock()
	if known {
		return nil
	}
	found, err := r.callFind(ctx, k.ID)
	if err == nil && subtle.ConstantTimeCompare(found.Secret, k.Secret) == 0 {
		err = errors.New("Options.Encryption.Find returned another secret than Current did")
	}
	if err != nil {
		return &keyError{id: k.ID, err: err}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.proved, r.provedID = time.Now(), k.ID
	return nil
}

// keyError is the error for a key that could not be fetched.
type keyError struct {
	id  string // empty for the current key
	err error
}

func (e *keyError) Error() string {
	if e.id == "" {
		return "the key to encrypt with could not be had: " + e.err.Error()
	}
	return fmt.Sprintf("the key %q could not be had: %v", e.id, e.err)
}

func (e *keyError) Unwrap() error { return e.err }

// keyUnavailable returns the StoreError for the operation op, which has written nothing
// because the key that it needs could not be fetched. err is the keyError.
func keyUnavailable(op string, err error) error {
	return &lambdaidem.StoreError{Op: op, Reason: lambdaidem.ReasonKey, NotApplied: true, Err: err}
}
