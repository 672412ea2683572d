package dynamostore

import (
	"context"
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
	of Encryption

	asking chan struct{} // held by the one caller that asks for the current key

	mu      sync.Mutex
	current heldKey
	retry   time.Time // wall clock: not before it is the current key asked for again while there is one
	found   *simplelru.LRU[string, heldKey]
}

// heldKey is a key, and when it was asked for. Its zero value is none.
type heldKey struct {
	key Key
	at  time.Time
}

const (
	// keysFound are remembered, beside the current one: with a key for each five
	// minutes, those of three days, in some 300 KB.
	keysFound = 1000
	// refreshPatience bounds a question for a key while there is an older one that
	// serves.
	refreshPatience = 2 * time.Second
	// refreshPause is a part of KeyFor: how long such a question is not asked again
	// once it has failed.
	refreshPause = 20
)

func newKeyring(of Encryption) *keyring {
	if of.Current == nil {
		return nil
	}
	found, err := simplelru.NewLRU[string, heldKey](keysFound, nil)
	if err != nil { // a positive number: can't happen
		panic(err)
	}
	return &keyring{of: of, asking: make(chan struct{}, 1), found: found}
}

// age is by the clock that went further: the monotonic one stands still while the
// process is frozen, the other can be set back. What is from the future is as old as
// can be.
func (h heldKey) age() time.Duration {
	now := time.Now()
	wall := now.Round(0).Sub(h.at.Round(0))
	if wall < 0 {
		wall = 1<<63 - 1
	}
	return max(wall, now.Sub(h.at))
}

func (h heldKey) there() bool { return h.key.ID != "" }

// forSealing is the key to seal with: the one that was had before the handler ran,
// however long ago that was.
func (r *keyring) forSealing(ctx context.Context) (Key, error) {
	r.mu.Lock()
	h := r.current
	r.mu.Unlock()
	if h.there() {
		return h.key, nil
	}
	return r.fresh(ctx)
}

// fresh is the current key. One caller asks for it at a time; the others wait only
// if there is none that serves.
func (r *keyring) fresh(ctx context.Context) (Key, error) {
	h, due := r.at()
	if !due {
		return h.key, nil
	}
	serves := h.there() && h.age() < 2*r.of.KeyFor
	if serves {
		select {
		case r.asking <- struct{}{}:
		default:
			return h.key, nil
		}
	} else {
		select {
		case r.asking <- struct{}{}:
		case <-ctx.Done():
			return Key{}, &keyError{err: fmt.Errorf("waiting for it: %w", context.Cause(ctx))}
		}
	}
	defer func() { <-r.asking }()
	if h, due := r.at(); !due { // by the one that asked while this one waited
		return h.key, nil
	}
	asked := time.Now()
	k, err := r.ask(ctx, serves)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.current = heldKey{k.clone(), asked}
		r.found.Add(k.ID, r.current)
		return r.current.key, nil
	case serves:
		r.retry = time.Now().Round(0).Add(r.of.KeyFor / refreshPause)
		return h.key, nil
	}
	return Key{}, err
}

// at is the current key that is known, and whether it is due to be asked for.
func (r *keyring) at() (h heldKey, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h = r.current
	switch age := h.age(); {
	case !h.there(), age >= 2*r.of.KeyFor:
		return h, true
	case age < r.of.KeyFor:
		return h, false
	}
	return h, !time.Now().Round(0).Before(r.retry)
}

// ask asks Current.
func (r *keyring) ask(ctx context.Context, patience bool) (Key, error) {
	if patience {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, refreshPatience)
		defer cancel()
	}
	k, err := r.of.Current(ctx)
	if err == nil {
		if problem := k.problem(); problem != "" {
			err = errors.New("Options.Encryption.Current returned a key that is none: " + problem)
		}
	}
	if err != nil {
		return Key{}, &keyError{err: err}
	}
	return k, nil
}

// byID is the key of that id. An error that is ErrKeyGone says that there will be
// none.
func (r *keyring) byID(ctx context.Context, id string) (Key, error) {
	r.mu.Lock()
	h, ok := r.found.Get(id)
	r.mu.Unlock()
	if ok && h.age() < r.of.KeyFor {
		return h.key, nil
	}
	asked := time.Now()
	k, err := r.find(ctx, id)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		h = heldKey{k.clone(), asked}
		r.found.Add(id, h)
		return h.key, nil
	case errors.Is(err, ErrKeyGone):
		r.found.Remove(id)
	case ok && h.age() < 2*r.of.KeyFor:
		return h.key, nil
	}
	return Key{}, &keyError{id: id, err: err}
}

// find asks Find.
func (r *keyring) find(ctx context.Context, id string) (Key, error) {
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
	return k, nil
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

// noKey is the StoreError of a verb that was not sent, for want of a key.
func noKey(op string, err error) error {
	return &lambdaidem.StoreError{Op: op, Reason: lambdaidem.ReasonKey, NotApplied: true, Err: err}
}
