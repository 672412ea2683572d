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

// keyring calls the functions of an Encryption and caches the keys that they return. A nil
// keyring means that nothing is encrypted.
type keyring struct {
	of      Encryption
	current keySlot // the key to encrypt with

	mu     sync.Mutex
	byIDs  *simplelru.LRU[string, *keySlot] // the keys to decrypt with, by their ids
	proved time.Time                        // when prove last succeeded
}

const (
	// maxCachedKeys is the number of keys that are cached besides the current one. With
	// a new key every five minutes these are the keys of three days, in about 300 KB.
	maxCachedKeys = 1000
	// firstTimeout limits a call for a key, so that a key service that hangs does not
	// hold up an invocation until its end. The first connection to KMS takes part of it.
	firstTimeout = 5 * time.Second
	// refreshTimeout limits the call while an older key can be used.
	refreshTimeout = 2 * time.Second
	// refreshPause divides KeyFor: after a failed refresh, or after ErrKeyGone, the next
	// call is made a twentieth of KeyFor later.
	refreshPause = 20
)

func newKeyring(of Encryption) *keyring {
	if of.Current == nil {
		return nil
	}
	byIDs, err := simplelru.NewLRU[string, *keySlot](maxCachedKeys, nil)
	if err != nil { // only a size below 1 is an error
		panic(err)
	}
	return &keyring{of: of, byIDs: byIDs}
}

// fresh returns the key to encrypt with, refreshed if it is older than KeyFor.
func (r *keyring) fresh(ctx context.Context) (Key, error) {
	k, err := r.current.get(ctx, r.of.KeyFor, r.askCurrent)
	if err != nil {
		return Key{}, &keyError{err: err}
	}
	return k, nil
}

// forSealing returns the key to encrypt an answer with. It is the cached key, which was
// fetched before the handler ran, however old it is.
func (r *keyring) forSealing(ctx context.Context) (Key, error) {
	if k := r.current.last(); k.ID != "" {
		return k, nil
	}
	return r.fresh(ctx)
}

func (r *keyring) askCurrent(ctx context.Context) (Key, error) {
	k, err := r.of.Current(ctx)
	if err != nil {
		return Key{}, err
	}
	if problem := k.problem(); problem != "" {
		return Key{}, errors.New("Options.Encryption.Current returned a key that is none: " + problem)
	}
	k = k.clone()
	slot := r.slot(k.ID) // so that this process needs no call of Find for its own records
	slot.mu.Lock()
	slot.key, slot.asked, slot.gone = k, time.Now(), nil
	slot.mu.Unlock()
	return k, nil
}

// byID returns the key with an id. If the error is ErrKeyGone, the key no longer exists.
func (r *keyring) byID(ctx context.Context, id string) (Key, error) {
	k, err := r.slot(id).get(ctx, r.of.KeyFor, func(ctx context.Context) (Key, error) { return r.askFor(ctx, id) })
	if err != nil {
		return Key{}, &keyError{id: id, err: err}
	}
	return k, nil
}

func (r *keyring) askFor(ctx context.Context, id string) (Key, error) {
	k, err := r.of.Find(ctx, id)
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

// prove checks that Find returns the current key, as another process will need it. After a
// success it does not check again for KeyFor.
func (r *keyring) prove(ctx context.Context) error {
	k, err := r.fresh(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	known := time.Since(r.proved) < r.of.KeyFor
	r.mu.Unlock()
	if known {
		return nil
	}
	found, err := r.askFor(ctx, k.ID)
	if err == nil && subtle.ConstantTimeCompare(found.Secret, k.Secret) == 0 {
		err = errors.New("Options.Encryption.Find returned another secret than Current did")
	}
	if err != nil {
		return &keyError{id: k.ID, err: err}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.proved = time.Now()
	return nil
}

// keySlot caches one key, and has the call for it that is in progress.
type keySlot struct {
	mu        sync.Mutex
	key       Key       // the zero Key if there is none
	asked     time.Time // when key or gone was fetched
	gone      error     // ErrKeyGone, if that was the last result
	mayBeGone bool      // ErrKeyGone replaces a cached key; false for the current key
	until     time.Time // wall clock; no refresh before this time, if there is a key
	fetching  *fetch    // nil if there is no call in progress
}

// fetch is one call for a key. Other callers wait for its result.
type fetch struct {
	done chan struct{}
	key  Key
	err  error
	left bool // the context of the caller has ended, which says nothing about the key
}

// last returns the cached key, however old it is.
func (s *keySlot) last() Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key
}

// get returns the key. If the cached key is older than keyFor, get fetches it again; if that
// fails, the cached key can be used for another keyFor. Only one of several callers fetches the
// key. The others wait for it only if the cached key can't be used.
func (s *keySlot) get(ctx context.Context, keyFor time.Duration, ask func(context.Context) (Key, error)) (Key, error) {
	for {
		s.mu.Lock()
		serves, due := s.serves(keyFor), s.due(keyFor)
		switch f := s.fetching; {
		case !due && s.gone != nil:
			err := s.gone
			s.mu.Unlock()
			return Key{}, err
		case !due, serves && f != nil:
			k := s.key
			s.mu.Unlock()
			return k, nil
		case f != nil:
			s.mu.Unlock()
			select {
			case <-f.done:
			case <-ctx.Done():
				return Key{}, fmt.Errorf("waiting for it: %w", context.Cause(ctx))
			}
			if f.left {
				continue
			}
			return f.key, f.err
		}
		f := &fetch{done: make(chan struct{}), left: true}
		s.fetching = f
		s.mu.Unlock()
		return s.fetch(ctx, f, keyFor, serves, ask)
	}
}

// fetch calls ask and caches the result.
func (s *keySlot) fetch(ctx context.Context, f *fetch, keyFor time.Duration, serves bool, ask func(context.Context) (Key, error)) (Key, error) {
	timeout := firstTimeout
	if serves {
		timeout = refreshTimeout
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	asked := time.Now()
	defer func() { // even if the application's function panics
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fetching = nil
		close(f.done)
	}()
	k, err := ask(limited)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.key, s.asked, s.gone = k, asked, nil
	case s.mayBeGone && errors.Is(err, ErrKeyGone):
		s.key, s.asked, s.gone = Key{}, asked, err
	case s.serves(keyFor):
		if ctx.Err() == nil { // otherwise the error may be that of the caller's context
			s.until = time.Now().Round(0).Add(keyFor / refreshPause)
		}
		k, err = s.key, nil
	}
	f.key, f.err, f.left = k, err, err != nil && ctx.Err() != nil
	return k, err
}

// due reports whether the key should be fetched.
func (s *keySlot) due(keyFor time.Duration) bool {
	age, told := s.age()
	switch {
	case s.gone != nil:
		return !told || age >= keyFor/refreshPause
	case s.key.ID == "":
		return true
	}
	paused := time.Now().Round(0).Before(s.until)
	return (!told || age >= keyFor) && (!paused || !s.serves(keyFor))
}

// serves reports whether the cached key may be used if it can't be fetched again.
func (s *keySlot) serves(keyFor time.Duration) bool {
	age, told := s.age()
	return s.key.ID != "" && (!told || age < 2*keyFor)
}

// age returns the time since the key was fetched, by the clock that says more: the monotonic
// clock stops while Lambda has frozen the process, and the wall clock can be set back. told is
// false if the wall clock was set back to before the fetch.
func (s *keySlot) age() (age time.Duration, told bool) {
	now := time.Now()
	wall := now.Round(0).Sub(s.asked.Round(0))
	return max(wall, now.Sub(s.asked)), wall >= 0
}

// keyError is the error of a key that could not be fetched.
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

// noKey returns the StoreError of a request that was not sent, because there is no key.
func noKey(op string, err error) error {
	return &lambdaidem.StoreError{Op: op, Reason: lambdaidem.ReasonKey, NotApplied: true, Err: err}
}
