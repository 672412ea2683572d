package lambdaidem

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dunglas/httpsfv"
)

// maxKeyHeader is the maximum length of the key's header in bytes, checked before parsing.
// A key of 255 characters fits even if each of them is escaped, with its quotes and with
// parameters, which RFC 9651 allows after a String.
const maxKeyHeader = 1024

// parseKey returns the key from the values of the key's header. If the header is absent, or
// if it contains an empty key, parseKey returns "" and no error. The caller must then refuse
// the request. If the header is malformed, parseKey returns an error that says why.
func parseKey(values []string) (string, error) {
	if len(values) == 0 {
		return "", nil
	}
	if len(values) > 1 {
		return "", errors.New("it was sent more than once")
	}
	v := strings.Trim(values[0], " \t") // RFC 9110, 5.5: surrounding white space is not part of the value
	if len(v) > maxKeyHeader {
		return "", fmt.Errorf("it is longer than %d bytes", maxKeyHeader)
	}
	if strings.HasPrefix(v, `"`) {
		item, err := httpsfv.UnmarshalItem([]string{v})
		if err != nil {
			return "", errors.New("it begins with a double quote and is not one String of RFC 9651")
		}
		key, ok := item.Value.(string)
		if !ok {
			return "", errors.New("it is not a String of RFC 9651")
		}
		return key, nil
	}
	if strings.ContainsAny(v, `,"`) {
		// Gateways join repeated headers with commas.
		return "", errors.New("without quotes around it, it must not contain a comma or a double quote")
	}
	return v, nil
}

// keyOf returns the key of a request from its header or from Options.Key. If the key is
// missing or invalid, keyOf returns the error to send to the client. With Options.Key, the
// caller must first check the request by outOfBounds: Options.Key must not receive a request
// that exceeds a limit.
func (g *Guard) keyOf(ctx context.Context, r *Request) (string, *Error) {
	if g.opts.Key != nil {
		return g.keyBy(g.derive(ctx, r))
	}
	var room [1]string
	values := r.headers.appendTo(room[:0], g.opts.KeyHeader)
	if len(values) == 0 {
		return "", keyMissing("This request needs the header " + g.opts.KeyHeader +
			": a value of your own that is unique to the operation and the same in every retry of it.")
	}
	key, invalid := parseKey(values)
	if invalid == nil && key == "" {
		invalid = errors.New("it is empty") // even if ValidateKey accepts an empty key
	}
	if invalid == nil {
		invalid = g.opts.ValidateKey(key)
	}
	if invalid != nil {
		return "", keyInvalid("The header "+g.opts.KeyHeader+" is invalid: "+invalid.Error()+".", nil)
	}
	return key, nil
}

// derivedKey has the results of Options.Key for one request.
type derivedKey struct {
	key string
	err error
}

// derive returns the results of Options.Key for a request. It calls Options.Key only once
// for each request.
func (g *Guard) derive(ctx context.Context, r *Request) *derivedKey {
	if r.derived == nil {
		key, err := g.opts.Key(ctx, r)
		r.derived = &derivedKey{key, err}
	}
	return r.derived
}

// keyless reports whether a request runs unguarded because Options.Key returns no key for
// it. If the request exceeds a limit, keyless returns false without calling Options.Key. The
// guard then refuses the request, because nobody knows whether it has a key.
func (g *Guard) keyless(ctx context.Context, r *Request) bool {
	if g.opts.Key == nil || !g.opts.KeyOptional || g.outOfBounds(r) != nil {
		return false
	}
	d := g.derive(ctx, r)
	return d.err == nil && d.key == ""
}

// keyBy returns the key that Options.Key returned. If the key is missing or invalid, keyBy
// returns the error to send to the client.
func (g *Guard) keyBy(d *derivedKey) (string, *Error) {
	if d.err != nil {
		return "", keyUnread("request", d.err)
	}
	if d.key == "" {
		return "", keyMissing("This request has no idempotency key: what its key is made of is missing or empty.")
	}
	if err := g.opts.ValidateKey(d.key); err != nil {
		return "", keyInvalid("The idempotency key of this request is invalid: "+err.Error()+".", nil)
	}
	return d.key, nil
}

// PrintableKey accepts keys of 1 to 255 printable ASCII characters, without a space at
// either end. For any other key it returns an error that says why. It is the default of
// Options.ValidateKey.
func PrintableKey(key string) error {
	switch {
	case key == "":
		return errors.New("it is empty")
	case len(key) > 255:
		return fmt.Errorf("it has %d characters; at most 255 are allowed", len(key))
	case key[0] == ' ' || key[len(key)-1] == ' ':
		return errors.New("it begins or ends with a space")
	}
	for i := range len(key) {
		if key[i] < 0x20 || key[i] > 0x7e {
			return errors.New("only printable ASCII characters are allowed")
		}
	}
	return nil
}

// TokenKey accepts keys of 8 to 255 characters from A-Z, a-z, 0-9, "_" and "-". For any
// other key it returns an error that says why.
func TokenKey(key string) error {
	if len(key) < 8 || len(key) > 255 {
		return fmt.Errorf("it has %d characters; 8 to 255 are allowed", len(key))
	}
	for i := range len(key) {
		if c := key[i]; !isAlphanumeric(c) && c != '_' && c != '-' {
			return errors.New(`only letters, digits, "_" and "-" are allowed`)
		}
	}
	return nil
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// UUIDKey accepts UUIDs of any version in their text form of 36 characters (RFC 9562,
// section 4). For any other key it returns an error that says why. A UUID in lower case and
// the same UUID in upper case are two different keys.
func UUIDKey(key string) error {
	if len(key) != 36 {
		return errors.New("it is not a UUID of 36 characters")
	}
	for i := range len(key) {
		c := key[i]
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return errors.New("it is not a UUID: a hyphen is missing")
			}
			continue
		}
		if hex := '0' <= c && c <= '9' || 'A' <= c && c <= 'F' || 'a' <= c && c <= 'f'; !hex {
			return errors.New("it is not a UUID: it has a character that is no hexadecimal digit")
		}
	}
	return nil
}

// UUIDv4or7Key accepts UUIDs of version 4 or 7 (RFC 9562), in the form that [UUIDKey]
// accepts. For any other key it returns an error that says why.
func UUIDv4or7Key(key string) error {
	if err := UUIDKey(key); err != nil {
		return err
	}
	if key[14] != '4' && key[14] != '7' || !strings.ContainsRune("89abAB", rune(key[19])) {
		return errors.New("it is not a UUID of version 4 or 7")
	}
	return nil
}
