package lowlevel

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
)

// Plain returns an answer in the form that the other functions of this package read. They
// are quick and strict; Plain is for what they do not understand, such as a member that
// is newer than this package, or text that is not UTF-8. It keeps the named members, and
// reports false if the body is not one JSON object.
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
