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

// Encryption encrypts answers before they leave the process: stored answers and the texts of
// failures, in records or in parts, the results of steps, and the answers that operators
// settle with. The rest of a record stays readable: its scope, its fingerprint, the names of
// steps, and the reasons that operators give. With the zero Encryption nothing is encrypted.
//
// The cipher is AES-256-GCM (NIST SP 800-38D). Each text is encrypted under a key of its own,
// which HKDF-SHA256 (RFC 5869) derives from the store's key and a salt, so one key can encrypt
// any number of texts. The record's id, the attempt's token and the kind of text (answer,
// failure, or step with its name) are associated data, so a text that was copied to another
// place is refused as damaged. A step survives its attempt, so it is bound to its record and
// name only: someone who can write to the table can restore a step from an earlier life of the
// same record. Texts are compressed before they are encrypted, and their lengths are visible.
// If readers of the table may choose parts of the answers, set Options.CompressFrom to
// math.MaxInt.
//
// A table may have texts under several keys, and older ones that are not encrypted. To
// introduce encryption, first deploy this version of the toolkit everywhere, and then set the
// option: older versions refuse encrypted records, and a store without the option answers
// their replays with lambdaidem.ErrAnswerUnavailable.
//
// Encryption adds about 65 bytes and the key's id to each text, and about 160 bytes to an
// answer, because of its attributes. See docs/encryption.md.
type Encryption struct {
	// Current returns the key to encrypt with. The store calls it before a handler runs,
	// so that the key is there for the answer, however long the handler takes. If it
	// fails, the call is refused with 503 lambdaidem.ErrStoreUnavailable. Current and Find
	// each have 5 seconds, or 2 if an older key can be used. Nil means no encryption.
	Current func(ctx context.Context) (Key, error)

	// Find returns the key with an id, for a replay or for the steps of an earlier
	// attempt. If it returns [ErrKeyGone], the key is gone for good: its answers become
	// lambdaidem.ErrAnswerUnavailable, and their handlers do not run again. After any other
	// error the call gets a 503, and a retry calls Find again. In every process, Find must
	// know each key that Current has returned. Required with Current.
	Find func(ctx context.Context, id string) (Key, error)

	// KeyFor is how long a key is cached before Current or Find is called again, and so
	// how late a process notices that a key was rotated or removed. If the call fails, the
	// cached key is used for another KeyFor. At least 1 s. Default: 5 minutes.
	KeyFor time.Duration

	// Only refuses texts that are not encrypted: an answer with
	// lambdaidem.ErrAnswerUnavailable, a record with steps with
	// lambdaidem.ErrRecordForeign. Then nobody without a key can put an answer into the
	// table. Set it when all records from before the encryption have expired: one TTL
	// after all processes encrypt, unless an older record is held. Default: false.
	Only bool
}

// problem returns what is wrong with the options, beginning with the name of a field, or "".
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

// Key is a key of 32 random bytes and its id. The id is stored beside each text and is not
// secret. It can be any name for the key, even the key itself as encrypted by a KMS. Never give
// an id another secret: the texts of the first one would be lost. Package fmt prints a Key as
// its id only, unless the Key is in an unexported field of a struct.
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

// StaticKeys returns an Encryption with a fixed list of keys, such as from a secrets manager.
// The first key encrypts, and all of them decrypt. To rotate, add the new key at the end and
// deploy everywhere, then move it to the front. Remove the old key when all texts under it have
// expired; a missing key is [ErrKeyGone]. StaticKeys panics if there is no key, a key is not
// valid, or two keys have one id.
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
