package dynamostore

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode/utf8"
)

// Encryption has the store encrypt what its records keep of answers, before it
// leaves the process: answers and the texts of failures, in their records or in
// parts, the results of steps, and the answers that operators settle with. What else
// a record has stays readable: scope, fingerprint, the names of steps, and what
// operators say. The zero Encryption is none.
//
// It is AES-256-GCM (NIST SP 800-38D). Each text has a key of its own, derived from
// the store's by HKDF-SHA256 (RFC 5869) with a salt of its own, so one key may encrypt
// any number of them. The id of the record, the token of the attempt, and what the
// text is (an answer, a failure, the step of that name) are associated data: a text
// that was copied to another place is refused as damaged. (A step outlives its
// attempt, so it is bound to record and name; who can write to the table can put
// back one of an earlier life of the same record.) What is encrypted is compressed
// before; the lengths of both show. Where who reads the table may choose a part of the
// answers, set Options.CompressFrom to math.MaxInt.
//
// A table may have texts under many keys, and without encryption from before there
// was any. To begin with it, deploy this version of the toolkit everywhere, then the
// option: versions that don't know it refuse its records, and a store without
// the option answers their replays with lambdaidem.ErrAnswerUnavailable.
//
// Each text is some 65 bytes longer for it, and its key's id; an answer some 160, with
// the attributes that say how it is stored. docs/encryption.md has more.
type Encryption struct {
	// Current returns the key for what is written from now on. It is asked before a
	// handler runs, and a call that gets none is refused with 503
	// (lambdaidem.ErrStoreUnavailable): what was had before the handler is there for
	// its answer, however long it takes. Either function has 5 seconds, and 2 while an
	// older key serves. Nil: there is no encryption.
	Current func(ctx context.Context) (Key, error)

	// Find returns the key of that id, for a replay or the steps of an earlier
	// attempt. An error that is [ErrKeyGone] says that it is gone for good: its
	// answers are lambdaidem.ErrAnswerUnavailable from then on, and no handler runs
	// again for it. Any other error says that it can't be reached: 503, and a retry
	// asks again. It must know each key that Current returns, in every process.
	// Required with Current.
	Find func(ctx context.Context, id string) (Key, error)

	// KeyFor is for how long a key is used before it is asked for again, by Current
	// and by Find: so it is how late a process notices a rotation, or that a key was
	// taken away. Where asking fails, what is there serves for as long again. At
	// least 1 s, default 5 minutes.
	KeyFor time.Duration

	// Only refuses what is not encrypted: an answer with
	// lambdaidem.ErrAnswerUnavailable, a record with steps with
	// lambdaidem.ErrRecordForeign. Then who can write to the table but has no key
	// can't give clients an answer of their own. Set it when what is from before the
	// encryption has expired: a TTL after all processes encrypt, unless a record from
	// before is held. Default false.
	Only bool
}

// problem says what is wrong with it, beginning with a field's name.
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

// Key is a key of 32 random bytes, and the id by which it is found again: stored
// beside each text, and no secret. It may be anything that names the key, the key
// itself as a KMS encrypted it for one. An id never gets another secret: what the first
// one encrypted would be lost. Printing a Key shows its id alone; a struct that has one
// in an unexported field is printed whole.
type Key struct {
	ID     string // 1 to 1024 bytes of UTF-8
	Secret []byte `json:"-"` // 32 bytes
}

// String names the key without its secret.
func (k Key) String() string { return "key " + strconv.Quote(k.ID) }

// Format names the key without its secret, whatever the verb.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// ErrKeyGone is what Encryption.Find returns, or wraps, for a key that does not exist
// any more, as opposed to one that can't be reached now.
var ErrKeyGone = errors.New("the key is gone for good")

// StaticKeys returns an encryption with keys that are known beforehand, from a secret
// manager, say. The first one encrypts; all of them decrypt. To rotate: add the new
// one last and deploy everywhere; then put it first; when all that the old one has
// encrypted has expired, take it away: a key that is missing is [ErrKeyGone]. It
// panics without a key, on one that is invalid, and on two of one id.
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

// problem describes what is wrong with a key, or returns "". It quotes no field: a
// user who swaps id and secret has the secret in the id.
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

// clone returns a key that nobody else can change.
func (k Key) clone() Key { return Key{ID: k.ID, Secret: bytes.Clone(k.Secret)} }

// A sealed text is
//
//	1 byte    the version of this form
//	          length of the key's id, as an unsigned varint; the id
//	          length of the token, likewise; the token of the attempt that sealed it
//	24 bytes  salt
//	          AES-256-GCM's ciphertext and tag
//
// Key and nonce are HKDF-SHA256 of the store's key with the salt. Associated data are
// all that is before the ciphertext, the record's id and the place.
const (
	cipherName  = "AES-256-GCM"
	sealVersion = 1
	saltBytes   = 24
	nonceBytes  = 12
	tagBytes    = 16
	sealInfo    = "lambdaidem sealed text 1"
	saltInfo    = "lambdaidem salt of a text 1"
)

// seal encrypts a text for its place in the record of that id.
func (k Key) seal(id, token, place string, text []byte) []byte {
	out := make([]byte, 0, 1+sizedBytes(k.ID)+sizedBytes(token)+saltBytes+len(text)+tagBytes)
	out = appendSized(append(out, sealVersion), k.ID)
	out = appendSized(out, token)
	salt := k.salt(associated(out, id, place), text)
	out = append(out, salt...)
	aead, nonce := k.cipher(salt)
	return aead.Seal(out, nonce, text, associated(out, id, place))
}

// salt returns that of one text in its place, and of no other: sealed again, for a write that
// is tried again, it is the same bytes. Nobody without the key can tell it from a
// random one, as HMAC-SHA256 is a pseudorandom function (RFC 2104; that a nonce may be
// made so, RFC 8452 and RFC 6979 show).
func (k Key) salt(place, text []byte) []byte {
	own, err := hkdf.Expand(sha256.New, k.Secret, saltInfo, sha256.Size)
	if err != nil { // 32 bytes: can't happen
		panic(err)
	}
	h := hmac.New(sha256.New, own)
	var size [8]byte // so that place and text can't run into each other
	binary.BigEndian.PutUint64(size[:], uint64(len(place)))
	h.Write(size[:])
	h.Write(place)
	h.Write(text)
	return h.Sum(nil)[:saltBytes]
}

// sealed is a sealed text, taken apart.
type sealed struct {
	keyID, token string
	header       []byte // all before the ciphertext
	salt, text   []byte
}

var errNoSeal = errors.New("it has not the form of an encrypted text of this version")

// parseSealed takes a sealed text apart.
func parseSealed(b []byte) (s sealed, err error) {
	if len(b) == 0 || b[0] != sealVersion {
		return s, errNoSeal
	}
	var ok bool
	rest := b[1:]
	if s.keyID, rest, ok = cutSized(rest); ok {
		s.token, rest, ok = cutSized(rest)
	}
	// A longer id is no key's, and must not be remembered as one: see keyring.slot.
	if !ok || len(rest) < saltBytes+tagBytes || len(s.keyID) > maxKeyID {
		return s, errNoSeal
	}
	s.salt, s.text = rest[:saltBytes], rest[saltBytes:]
	s.header = b[:len(b)-len(s.text)]
	return s, nil
}

var errOtherSeal = errors.New("it can't be decrypted: it was changed, or is of another record, another attempt, another place or another key")

// open decrypts it.
func (s sealed) open(k Key, id, place string) ([]byte, error) {
	aead, nonce := k.cipher(s.salt)
	text, err := aead.Open(nil, nonce, s.text, associated(s.header, id, place))
	if err != nil {
		return nil, errOtherSeal
	}
	if text == nil {
		text = []byte{} // nil is absent
	}
	return text, nil
}

// cipher returns that of one text, and its nonce.
func (k Key) cipher(salt []byte) (cipher.AEAD, []byte) {
	derived, err := hkdf.Key(sha256.New, k.Secret, salt, sealInfo, secretBytes+nonceBytes)
	if err != nil { // some 44 bytes: can't happen
		panic(err)
	}
	aead, err := gcm(derived[:secretBytes])
	if err != nil { // New has tried
		panic(err)
	}
	return aead, derived[secretBytes:]
}

// gcm is AES-256-GCM by that secret.
func gcm(secret []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what is wrong
	}
	return cipher.NewGCM(block) //nolint:wrapcheck // it says what is wrong
}

// associated returns the data that a text is bound to.
func associated(header []byte, id, place string) []byte {
	out := make([]byte, 0, len(header)+sizedBytes(id)+sizedBytes(place))
	return appendSized(appendSized(append(out, header...), id), place)
}

// appendSized writes a text after its length, so that no two of them can run into
// each other.
func appendSized(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// sizedBytes returns enough room for a text and its length.
func sizedBytes(s string) int { return binary.MaxVarintLen64 + len(s) }

func cutSized(b []byte) (s string, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) { //nolint:gosec // size is len(b) at most
		return "", nil, false
	}
	b = b[size:]
	return string(b[:n]), b[n:], true
}
