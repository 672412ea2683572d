package lambdaidem

import (
	"errors"
	"fmt"
	"strings"
)

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
