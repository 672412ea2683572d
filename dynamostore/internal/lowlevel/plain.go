package lowlevel

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
)

// Plain rewrites the body of a response for the other functions of this package, which are strict.
// Of the members at the top level, it keeps those with the given names, unless they are null. It
// returns false if the body is not one JSON object. Plain is slow: call it only after another
// function has refused the body, for example because DynamoDB has added a member.
func Plain(body string, members ...string) (string, bool) {
	var all map[string]any
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&all); err != nil || all == nil {
		return "", false
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return "", false
	}
	for name, v := range all {
		if v == nil || !slices.Contains(members, name) {
			delete(all, name)
		}
	}
	plain, err := json.Marshal(all)
	return string(plain), err == nil
}
