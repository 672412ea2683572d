package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode/utf8"
)

// Encryption encrypts, on the client side, these texts in a record: answers and failures (including
// those that operators store), and the results of steps. The rest of a record stays readable, such
// as its scope, its fingerprint, the names of steps, and the reasons that operators give. The zero
// Encryption encrypts nothing.
//
// The cipher is AES-256-GCM (NIST SP 800-38D). HKDF-SHA256 (RFC 5869) derives a separate key for
// each text, from the store's key and a salt. So one store key can encrypt any number of texts.
//
// The associated data of a text are the record's id, the attempt's token, and the kind of text. A
// text that was copied to another record or attempt is therefore refused as damaged. Results of
// steps are bound only to the record and the name of the step, because later attempts must read
// them. Someone who can write to the table can replace a step's result with an older result of the
// same record and step.
//
// Answers are compressed before they are encrypted, and their lengths are visible. If people who
// can read the table can also choose a piece of an answer, the length may reveal the rest. In that
// case, set Options.CompressFrom to math.MaxInt, which disables compression.
//
// A table may contain texts under several keys, and texts that are not encrypted. Before you set
// Options.Encryption, deploy this version of the toolkit everywhere, because older versions refuse
// encrypted records. A store without that option can't decrypt an answer, and a retry gets
// lambdaidem.ErrAnswerUnavailable.
//
// Encryption makes an answer about 160 bytes larger, and any other text about 65 bytes plus the
// length of the key's id. See docs/encryption.md.
type Encryption struct {
	// Current returns the key to encrypt with. The store calls Current before a handler runs. If
	// Current fails, the handler does not run, and the client receives 503
	// lambdaidem.ErrStoreUnavailable. The context of a call of Current or Find ends after 5
	// seconds, or after 2 seconds if the store has cached a key that it can still use. If Current
	// is nil, nothing is encrypted.
	Current func(ctx context.Context) (Key, error)

	// Find returns the key with the given id, to decrypt an answer or the results of steps. In
	// every process, Find must know each key that Current has returned in any process. Find is
	// required if Current is set.
	//
	// If Find returns [ErrKeyGone], the key is lost for good. Replays of its answers then fail with
	// lambdaidem.ErrAnswerUnavailable, and the handlers do not run again. After any other error,
	// the client receives a 503. When the client retries, the store calls Find again.
	Find func(ctx context.Context, id string) (Key, error)

	// KeyFor is how long a key is cached before the store calls Current or Find again. So a process
	// can take this long to notice that a key was rotated or removed. If the call fails, the cached
	// key is used until its age is twice KeyFor. Minimum: 1 s. Default: 5 minutes.
	KeyFor time.Duration

	// If Only is true, the store rejects every answer and step that it reads unencrypted. An answer
	// that somebody without a key has written into the table is thus never replayed: the replay
	// fails with lambdaidem.ErrAnswerUnavailable. A record with unencrypted steps is refused with
	// lambdaidem.ErrRecordForeign.
	//
	// Before you set Only, deploy Current everywhere, and wait until all unencrypted records have
	// expired, that is, for the sum of the TTL, the function's timeout and 15 minutes. Wait longer
	// if such a record is held, that is, waits for an operator; see docs/operate.md, "Something
	// changes in a deployment". Default: false.
	Only bool
}

// problem returns a description of the first invalid option, beginning with the name of its
// field. It returns "" if all options are valid.
func (e *Encryption) problem() string {
	switch {
	case (e.Current == nil) != (e.Find == nil):
		return "Current and Find: one of them is nil; set both, or none"
	case e.Only && e.Current == nil:
		return "Only is true and there is no Current: nothing could be read"
	case e.KeyFor < time.Second:
		return fmt.Sprintf("KeyFor is %v; it must be at least 1s", e.KeyFor)
	case e.Current != nil:
		if _, err := gcm(make([]byte, secretBytes)); err != nil {
			return fmt.Sprintf("Current is set, and this process can't encrypt (GODEBUG=fips140=only allows no nonces that are derived; fips140=on does): %v", err)
		}
	}
	return ""
}

// Key is an encryption key and its id. The id is stored with each encrypted text and is not
// secret. It can be any name for the key, or even the key itself, encrypted by a KMS. Never use
// an id again for another secret: texts encrypted under the first secret would be lost.
//
// Package fmt prints only the id of a Key, unless the Key is in an unexported field of a struct.
type Key struct {
	ID     string // 1 to 1024 bytes of UTF-8
	Secret []byte `json:"-"` // 32 random bytes
}

// String returns the word "key" and the quoted id. It does not return the secret.
func (k Key) String() string { return "key " + strconv.Quote(k.ID) }

// Format writes what String returns, for every verb, so that even %x or %#v does not print the
// secret.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// ErrKeyGone is the error that Encryption.Find returns, or wraps, for a key that no longer
// exists. For a key that is only unavailable at the moment, Find must return another error.
var ErrKeyGone = errors.New("the key is gone for good")

// StaticKeys returns an Encryption with a fixed list of keys, for example from a secrets manager.
// The first key encrypts, and all of them decrypt. A key that is not in the list is treated as lost
// for good; see [ErrKeyGone].
//
// To rotate keys, add the new key at the end and deploy everywhere. Then move it to the front and
// deploy again everywhere. Remove the old key when all records encrypted under it have expired:
// wait for the sum of the TTL, the function's timeout and 15 minutes after the second deployment.
// Wait longer if such a record is held, that is, waits for an operator; see docs/operate.md,
// "Something changes in a deployment".
//
// StaticKeys panics if there is no key, a key is not valid, or two keys have the same id.
func StaticKeys(keys ...Key) Encryption {
	if len(keys) == 0 {
		panic("dynamostore: StaticKeys: there is no key")
	}
	byID := make(map[string]Key, len(keys))
	for i, k := range keys {
		if problem := k.problem(); problem != "" {
			panic(fmt.Sprintf("dynamostore: StaticKeys: key %d: %s", i+1, problem))
		}
		if _, twice := byID[k.ID]; twice {
			panic(fmt.Sprintf("dynamostore: StaticKeys: two keys have the id %q", k.ID))
		}
		byID[k.ID] = k.clone()
	}
	current := byID[keys[0].ID]
	return Encryption{
		Current: func(context.Context) (Key, error) { return current, nil },
		Find: func(_ context.Context, id string) (Key, error) {
			if k, ok := byID[id]; ok {
				return k, nil
			}
			return Key{}, fmt.Errorf("no key has the id %q: %w", id, ErrKeyGone)
		},
	}
}

const (
	secretBytes = 32 // AES-256
	maxKeyID    = 1024
)

// problem returns a description of what is wrong with the key, or "" if the key is valid. The
// description never quotes the id, because a user who swaps id and secret has the secret in
// the id.
func (k Key) problem() string {
	switch {
	case k.ID == "" || len(k.ID) > maxKeyID:
		return fmt.Sprintf("its id has %d bytes; it must have 1 to %d", len(k.ID), maxKeyID)
	case !utf8.ValidString(k.ID):
		return "its id is not UTF-8"
	case len(k.Secret) != secretBytes:
		return fmt.Sprintf("its secret has %d bytes; AES-256 takes %d", len(k.Secret), secretBytes)
	}
	return ""
}

// clone returns a copy of the key with its own copy of the secret.
func (k Key) clone() Key { return Key{ID: k.ID, Secret: bytes.Clone(k.Secret)} }
