package dynamostore

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// ParseKeys parses the text of a key file, which the command idem reads too. Each line has a key's
// id and the base64 of its 32 secret bytes, separated by spaces or tabs. The first key is the one
// that encrypts. Empty lines and lines that begin with # are skipped. The keys are valid arguments
// for [StaticKeys].
//
// ParseKeys returns an error for a text without a key, and for an id that occurs twice. It also
// returns an error for an id that could be a secret, because the two columns were probably swapped.
// The error for a line has its number but never its text, so it can be logged.
func ParseKeys(text []byte) ([]Key, error) {
	var keys []Key
	lineOf := make(map[string]int) // the line number of each id
	n := 0
	for line := range strings.Lines(string(bytes.TrimPrefix(text, []byte("\ufeff")))) {
		n++
		columns := strings.Fields(line)
		if len(columns) == 0 || strings.HasPrefix(columns[0], "#") {
			continue
		}
		key, err := parseKey(columns)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if first, twice := lineOf[key.ID]; twice {
			return nil, fmt.Errorf("line %d: the id is that of line %d; give each key an id of its own", n, first)
		}
		lineOf[key.ID] = n
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no key; write a line with an id and the base64 of 32 bytes")
	}
	return keys, nil
}

// parseKey parses the columns of one line. Its errors quote neither column, because either column
// may contain the secret.
func parseKey(columns []string) (Key, error) {
	if len(columns) != 2 { //nolint:mnd // id and secret
		return Key{}, fmt.Errorf("it has %d columns instead of 2; write an id and the base64 of 32 bytes", len(columns))
	}
	id, encoded := columns[0], columns[1]
	if couldBeSecret(id) {
		return Key{}, errors.New("the first column could be a secret; write the id first, then the secret, and choose an id that is not the base64 of 32 bytes")
	}
	secret, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return Key{}, errors.New("the second column is not base64 (RFC 4648, section 4); write the id first, then the base64 of 32 bytes")
	}
	key := Key{ID: id, Secret: secret}
	if problem := key.problem(); problem != "" {
		return Key{}, errors.New(problem)
	}
	return key, nil
}

// couldBeSecret reports whether an id could be a secret. That is so if it is the base64
// of 32 bytes, in the standard or the URL alphabet, with or without padding.
func couldBeSecret(id string) bool {
	unpadded := strings.NewReplacer("-", "+", "_", "/", "=", "").Replace(id)
	secret, err := base64.RawStdEncoding.DecodeString(unpadded)
	return err == nil && len(secret) == secretBytes
}
