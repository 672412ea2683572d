package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lambdaidem/toolkit/internal/elapsed"
)

// keySlot caches one key: the result of Encryption.Current, or the result of Encryption.Find for
// one id. If several callers need the key at the same time, only one of them fetches it.
type keySlot struct {
	mu          sync.Mutex
	key         Key           // the cached key; the zero Key if none is cached
	fetchedAt   time.Time     // the start of the call of Current or Find that returned key or goneErr
	goneErr     error         // a call's error that wraps ErrKeyGone, kept until a later call succeeds; nil if there is none
	mayBeGone   bool          // whether ErrKeyGone removes a cached key; false for the current key
	pausedUntil time.Time     // set by a failed refresh: a usable key is not refreshed again before this time, by the wall clock
	fetching    *pendingFetch // the call in progress; other callers can wait for it; nil if there is none
}

// pendingFetch is a call of Encryption.Current or Encryption.Find that is in progress. Concurrent
// callers that need the same key wait for its result.
type pendingFetch struct {
	done      chan struct{} // closed when the other fields have the result
	key       Key
	err       error
	abandoned bool // the call has no result, because it panicked or its caller's context ended; waiters must fetch the key again
}

// last returns the cached key, however old it is.
func (s *keySlot) last() Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key
}

// get returns the key. It calls ask to fetch the key if none is cached, or if the cached key is
// older than keyFor. If ask fails, get returns the cached key until that key is twice as old as
// keyFor. But if the error is ErrKeyGone and the slot is for a decryption key, get drops the cached
// key and returns the error.
//
// Only one of several concurrent callers calls ask. The others return the cached key. If the cached
// key can't be used, they wait for the result of ask.
func (s *keySlot) get(ctx context.Context, keyFor time.Duration, ask func(context.Context) (Key, error)) (Key, error) {
	for {
		s.mu.Lock()
		usable, due := s.usable(keyFor), s.due(keyFor)
		switch f := s.fetching; {
		case !due && s.goneErr != nil:
			err := s.goneErr
			s.mu.Unlock()
			return Key{}, err
		case !due, usable && f != nil:
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
			if f.abandoned {
				continue
			}
			return f.key, f.err
		}
		f := &pendingFetch{done: make(chan struct{}), abandoned: true}
		s.fetching = f
		s.mu.Unlock()
		return s.fetch(ctx, f, keyFor, usable, ask)
	}
}

// fetch calls ask to fetch the key, and caches the key that ask returns. If ask fails, fetch
// returns the cached key if that key is still usable, and otherwise the error. Callers that wait
// for pending get the same result. If wasUsable is true, the cached key was usable before this
// call, and ask gets less time.
func (s *keySlot) fetch(ctx context.Context, pending *pendingFetch, keyFor time.Duration, wasUsable bool, ask func(context.Context) (Key, error)) (Key, error) {
	timeout := firstTimeout
	if wasUsable {
		timeout = refreshTimeout
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	fetchedAt := time.Now()
	defer func() { // deferred because ask calls the application's function, which may panic
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fetching = nil
		close(pending.done)
	}()
	k, err := ask(limited)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.key, s.fetchedAt, s.goneErr = k, fetchedAt, nil
	case s.mayBeGone && errors.Is(err, ErrKeyGone):
		// The decryption key no longer exists: drop the cached key, and keep the error.
		s.key, s.fetchedAt, s.goneErr = Key{}, fetchedAt, err
	case s.usable(keyFor):
		if ctx.Err() == nil { // if the caller's context has ended, the key service may be fine: don't pause
			s.pausedUntil = time.Now().Round(0).Add(keyFor / refreshPause)
		}
		k, err = s.key, nil
	}
	pending.key, pending.err, pending.abandoned = k, err, err != nil && ctx.Err() != nil
	return k, err
}

// due reports whether the key should be fetched now: no key is cached, or the cached key is older
// than keyFor. But due returns false during a pause of keyFor/refreshPause after ErrKeyGone, or
// after the failed refresh of a key that is still usable.
func (s *keySlot) due(keyFor time.Duration) bool {
	age, known := elapsed.Since(s.fetchedAt)
	switch {
	case s.goneErr != nil:
		return !known || age >= keyFor/refreshPause
	case s.key.ID == "":
		return true
	}
	paused := time.Now().Round(0).Before(s.pausedUntil)
	return (!known || age >= keyFor) && (!paused || !s.usable(keyFor))
}

// usable reports whether the cached key may be used if fetching it again fails. keyFor is the time
// after which a key is fetched again. A key may be used for twice that time.
func (s *keySlot) usable(keyFor time.Duration) bool {
	age, known := elapsed.Since(s.fetchedAt)
	return s.key.ID != "" && (!known || age < 2*keyFor)
}
