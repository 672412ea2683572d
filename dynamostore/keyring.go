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

// keyring asks the functions of an Encryption, and remembers what they said. A nil
// one is no encryption.
type keyring struct {
	of      Encryption
	current keySlot

	mu     sync.Mutex
	found  *simplelru.LRU[string, *keySlot] // by the keys' ids
	proved time.Time                        // when Find knew the current key, on the health check's question
}

const (
	// keysFound are remembered, beside the current one: with a key for each five
	// minutes, those of three days, in some 300 KB.
	keysFound = 1000
	// firstPatience bounds a question for a key, so that a service that hangs holds up
	// nobody for as long as his invocation lasts. The first connection to KMS of a
	// small function takes a part of it.
	firstPatience = 5 * time.Second
	// refreshPatience bounds it while there is an older key that serves.
	refreshPatience = 2 * time.Second
	// refreshPause is a part of KeyFor: how long such a question is not asked again
	// once it has failed, nor one whose key is gone.
	refreshPause = 20
)

func newKeyring(of Encryption) *keyring {
	if of.Current == nil {
		return nil
	}
	found, err := simplelru.NewLRU[string, *keySlot](keysFound, nil)
	if err != nil { // a positive number: can't happen
		panic(err)
	}
	return &keyring{of: of, found: found}
}

// fresh returns the key to encrypt with, of what begins now.
func (r *keyring) fresh(ctx context.Context) (Key, error) {
	k, err := r.current.get(ctx, r.of.KeyFor, r.askCurrent)
	if err != nil {
		return Key{}, &keyError{err: err}
	}
	return k, nil
}

// forSealing returns the key to seal with: the one that was had before the handler ran,
// however long ago that was.
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
	slot := r.slot(k.ID) // what this process encrypts, it need not ask for
	slot.mu.Lock()
	slot.key, slot.asked, slot.gone = k, time.Now(), nil
	slot.mu.Unlock()
	return k, nil
}

// byID returns the key of that id. An error that is ErrKeyGone says that there will be
// none.
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
	slot, ok := r.found.Get(id)
	if !ok {
		slot = &keySlot{mayBeGone: true}
		r.found.Add(id, slot)
	}
	return slot
}

// prove asks Find for the current key, as another process would have to, once in
// KeyFor while it is known.
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

// keySlot is one key as it was asked for last, and the question that is in progress.
type keySlot struct {
	mu        sync.Mutex
	key       Key       // without an id: there is none
	asked     time.Time // when it was asked for, or found to be gone
	gone      error     // the answer was that there is none
	mayBeGone bool      // one that is found by its id; else a process keeps what it has
	until     time.Time // wall clock: not before it is asked for again, where there is a key
	question  *question // nil: nobody asks
}

// question is one call of a function, for all who wait for its answer.
type question struct {
	done chan struct{}
	key  Key
	err  error
	left bool // the caller who asked has left: the answer is of his time, not of the key
}

// last returns the key that was had last, however old it is.
func (s *keySlot) last() Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key
}

// get returns the key. It is asked for where it is older than keyFor; where that fails, it
// serves for as long again. Of many callers one asks, and the others wait only if
// there is no key that serves.
func (s *keySlot) get(ctx context.Context, keyFor time.Duration, ask func(context.Context) (Key, error)) (Key, error) {
	for {
		s.mu.Lock()
		serves, due := s.serves(keyFor), s.due(keyFor)
		switch q := s.question; {
		case !due && s.gone != nil:
			err := s.gone
			s.mu.Unlock()
			return Key{}, err
		case !due, serves && q != nil:
			k := s.key
			s.mu.Unlock()
			return k, nil
		case q != nil:
			s.mu.Unlock()
			select {
			case <-q.done:
			case <-ctx.Done():
				return Key{}, fmt.Errorf("waiting for it: %w", context.Cause(ctx))
			}
			if q.left {
				continue
			}
			return q.key, q.err
		}
		q := &question{done: make(chan struct{}), left: true}
		s.question = q
		s.mu.Unlock()
		return s.ask(ctx, q, keyFor, serves, ask)
	}
}

// ask asks the question, and notes the answer.
func (s *keySlot) ask(ctx context.Context, q *question, keyFor time.Duration, serves bool, ask func(context.Context) (Key, error)) (Key, error) {
	patience := firstPatience
	if serves {
		patience = refreshPatience
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	asked := time.Now()
	defer func() { // a panic of the function's too ends the question
		s.mu.Lock()
		defer s.mu.Unlock()
		s.question = nil
		close(q.done)
	}()
	k, err := ask(limited)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.key, s.asked, s.gone = k, asked, nil
	case s.mayBeGone && errors.Is(err, ErrKeyGone):
		s.key, s.asked, s.gone = Key{}, asked, err
	case s.serves(keyFor): // still
		if ctx.Err() == nil { // that a caller left says nothing of the service
			s.until = time.Now().Round(0).Add(keyFor / refreshPause)
		}
		k, err = s.key, nil
	}
	q.key, q.err, q.left = k, err, err != nil && ctx.Err() != nil
	return k, err
}

// due reports whether the key is to be asked for.
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

// serves reports whether the key may be used where it can't be asked for.
func (s *keySlot) serves(keyFor time.Duration) bool {
	age, told := s.age()
	return s.key.ID != "" && (!told || age < 2*keyFor)
}

// age is by the clock that went further: the monotonic one stands still while the
// process is frozen, the other can be set back. The age of what is from the future
// can't be told.
func (s *keySlot) age() (age time.Duration, told bool) {
	now := time.Now()
	wall := now.Round(0).Sub(s.asked.Round(0))
	return max(wall, now.Sub(s.asked)), wall >= 0
}

// keyError is of a key that could not be had.
type keyError struct {
	id  string // empty: the current one
	err error
}

func (e *keyError) Error() string {
	if e.id == "" {
		return "the key to encrypt with could not be had: " + e.err.Error()
	}
	return fmt.Sprintf("the key %q could not be had: %v", e.id, e.err)
}

func (e *keyError) Unwrap() error { return e.err }

// noKey returns the StoreError of a verb that was not sent, for lack of a key.
func noKey(op string, err error) error {
	return &lambdaidem.StoreError{Op: op, Reason: lambdaidem.ReasonKey, NotApplied: true, Err: err}
}
