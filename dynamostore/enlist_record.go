package dynamostore

import (
	"strings"
)

// isRecord reports whether the write is to an idempotency record of the store s, or to an item with
// a part of a large answer. Handlers must not write such items.
func (w *Write) isRecord(s *Store) bool {
	if tableName(w.table) != tableName(&s.table) {
		return false
	}
	attrs := w.key
	if attrs == nil {
		attrs = w.item
	}
	var id text
	return attrs[s.layout.id()] != nil && takeValue(&id, attrs[s.layout.id()]) == "" && strings.HasPrefix(string(id), recordPrefix)
}

// recordPrefix is the prefix of the partition key of every record, and of every item with
// a part of a large answer. It distinguishes them from the items of other tools that share
// the table.
const recordPrefix = "lambdaidem#"
