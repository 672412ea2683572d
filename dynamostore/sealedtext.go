package dynamostore

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// Constants of the sealed form, which is the binary form of an encrypted text:
//
//	1 byte    version of the form
//	          length of the key's id, as an unsigned varint, then the id
//	          length of the token, as an unsigned varint, then the fencing token of
//	          the attempt that encrypted the text
//	24 bytes  salt
//	          ciphertext and tag of AES-256-GCM
//
// The AES key and the nonce are derived from the store's key and the salt by HKDF-SHA256. The
// associated data are everything before the ciphertext, then the record's id, then the purpose of
// the text; see apart.purpose and purposeOfStep.
const (
	cipherName  = "AES-256-GCM"
	sealVersion = 1
	saltBytes   = 24
	nonceBytes  = 12
	tagBytes    = 16
	sealInfo    = "lambdaidem sealed text 1"
	saltInfo    = "lambdaidem salt of a text 1"
)

// seal encrypts a text of the record with the given id, and returns its sealed form. The parameter
// token is the fencing token of the attempt. The parameter purpose says which text it is, such as
// the result of a certain step. The same arguments always give the same result.
func (k Key) seal(id, token, purpose string, text []byte) []byte {
	out := make([]byte, 0, 1+sizedBytes(k.ID)+sizedBytes(token)+saltBytes+len(text)+tagBytes)
	out = appendSized(append(out, sealVersion), k.ID)
	out = appendSized(out, token)
	salt := k.salt(associated(out, id, purpose), text)
	out = append(out, salt...)
	aead, nonce := k.cipher(salt)
	return aead.Seal(out, nonce, text, associated(out, id, purpose))
}

// salt returns the salt for encrypting a text: an HMAC-SHA256 of associatedData and the text, with
// a key derived from k. The same arguments always give the same salt, so a write that is sent again
// has the same bytes. Different texts have different salts. seal derives the AES key and the nonce
// from the salt, so it never encrypts two texts with the same key and nonce.
//
// Nobody without k can tell the salt from a random one, because HMAC-SHA256 (RFC 2104) is a
// pseudorandom function. RFC 8452 and RFC 6979 derive nonces in a similar way.
func (k Key) salt(associatedData, text []byte) []byte {
	own, err := hkdf.Expand(sha256.New, k.Secret, saltInfo, sha256.Size)
	if err != nil { // can't happen: HKDF-SHA256 can derive far more than 32 bytes
		panic(err)
	}
	h := hmac.New(sha256.New, own)
	var size [8]byte // the length of associatedData, without which the concatenation would be ambiguous
	binary.BigEndian.PutUint64(size[:], uint64(len(associatedData)))
	h.Write(size[:])
	h.Write(associatedData)
	h.Write(text)
	return h.Sum(nil)[:saltBytes]
}

// sealed is an encrypted text, split into the fields that Key.seal encodes.
type sealed struct {
	keyID, token string
	header       []byte // everything before the ciphertext, including the salt
	salt, text   []byte // text is the ciphertext and the tag
}

var errNoSeal = errors.New("it has not the form of an encrypted text of this version")

// parseSealed splits the encrypted text b into its fields, such as the key's id and the salt. It
// does not decrypt the text. It returns errNoSeal if b does not have the format that seal writes.
func parseSealed(b []byte) (s sealed, err error) {
	if len(b) == 0 || b[0] != sealVersion {
		return s, errNoSeal
	}
	var ok bool
	rest := b[1:]
	if s.keyID, rest, ok = cutSized(rest); ok {
		s.token, rest, ok = cutSized(rest)
	}
	// No key has an id longer than maxKeyID. Refuse a longer id here, because the keyring would
	// keep it in memory; see keyring.slot.
	if !ok || len(rest) < saltBytes+tagBytes || len(s.keyID) > maxKeyID {
		return s, errNoSeal
	}
	s.salt, s.text = rest[:saltBytes], rest[saltBytes:]
	s.header = b[:len(b)-len(s.text)]
	return s, nil
}

var errOtherSeal = errors.New("it can't be decrypted: it was changed, or is of another record, another attempt, another place or another key")

// open decrypts s with k. It returns errOtherSeal if s was changed or encrypted with another key,
// or if id or purpose differs from the one that was passed to seal.
func (s sealed) open(k Key, id, purpose string) ([]byte, error) {
	aead, nonce := k.cipher(s.salt)
	text, err := aead.Open(nil, nonce, s.text, associated(s.header, id, purpose))
	if err != nil {
		return nil, errOtherSeal
	}
	if text == nil {
		text = []byte{} // an empty text; nil would mean that there is no text
	}
	return text, nil
}

// cipher derives the AES key and the nonce for one text from k and the salt of the text. It
// returns AES-GCM with that AES key, and the nonce.
func (k Key) cipher(salt []byte) (cipher.AEAD, []byte) {
	derived, err := hkdf.Key(sha256.New, k.Secret, salt, sealInfo, secretBytes+nonceBytes)
	if err != nil { // can't happen: HKDF-SHA256 can derive far more than 44 bytes
		panic(err)
	}
	aead, err := gcm(derived[:secretBytes])
	if err != nil { // can't happen: New has checked that gcm works
		panic(err)
	}
	return aead, derived[secretBytes:]
}

// gcm returns AES-256-GCM with the given secret, which must have 32 bytes. It returns an error
// if the process runs with GODEBUG=fips140=only, which forbids nonces that the caller chooses.
func gcm(secret []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what is wrong
	}
	return cipher.NewGCM(block) //nolint:wrapcheck // it says what is wrong
}

// associated returns the associated data of a text. Decryption fails unless it uses the same
// header, record id and purpose as encryption.
func associated(header []byte, id, purpose string) []byte {
	out := make([]byte, 0, len(header)+sizedBytes(id)+sizedBytes(purpose))
	return appendSized(appendSized(append(out, header...), id), purpose)
}

// appendSized appends the length of s and then s. The length makes a concatenation of several
// strings unambiguous.
func appendSized(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// sizedBytes returns the maximum number of bytes that appendSized appends for s.
func sizedBytes(s string) int { return binary.MaxVarintLen64 + len(s) }

// cutSized returns the string that appendSized has appended, and the bytes after it. ok is
// false if b does not begin with such a string.
func cutSized(b []byte) (s string, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) { //nolint:gosec // size is len(b) at most
		return "", nil, false
	}
	b = b[size:]
	return string(b[:n]), b[n:], true
}
