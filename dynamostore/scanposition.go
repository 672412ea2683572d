package dynamostore

import (
	"encoding/json"
	"fmt"
)

// scanPosition returns the key of a page's last item as a string for page.nextPosition, or "" if
// last is empty. The string is the partition key or, if the table has a sort key, a JSON array of
// both keys. An item of this package has the same value in both, but the last item may be another
// tool's.
func (l *layout) scanPosition(last attributes) string {
	if len(last) == 0 {
		return ""
	}
	var id, sortKey text
	_ = takeValue(&id, last[l.id()]) // CheckTable reports a key that is not a string
	if l.sortKey() == "" {
		return string(id)
	}
	_ = takeValue(&sortKey, last[l.sortKey()])
	both, _ := json.Marshal([2]string{string(id), string(sortKey)}) //nolint:errchkjson // strings can always be encoded
	return string(both)
}

// parseScanPosition is the inverse of scanPosition: it returns the key of the item at the given
// position. It returns an error if the table has a sort key and position is not a JSON array.
func (l *layout) parseScanPosition(position string) (attributes, error) {
	if l.sortKey() == "" {
		return l.key(position), nil
	}
	var both [2]string
	if err := json.Unmarshal([]byte(position), &both); err != nil {
		return nil, fmt.Errorf("%q is no position in a table with a sort key, which is a JSON array of two strings: %w", position, err)
	}
	return attributes{l.id(): str(both[0]), l.sortKey(): str(both[1])}, nil
}
