package dynamostore

import (
	"reflect"
)

// sameItem reports whether two writes are certainly to the same item. A put does not say which of
// its attributes are the key, so two puts count as the same item only if their items are equal. A
// put and another kind of write are compared by the key of that other write.
func (w *Write) sameItem(other *Write) bool {
	if tableName(w.table) != tableName(other.table) {
		return false
	}
	switch {
	case w.key != nil && other.key != nil:
		return reflect.DeepEqual(w.key, other.key)
	case w.key != nil:
		return hasAttributes(other.item, w.key)
	case other.key != nil:
		return hasAttributes(w.item, other.key)
	default:
		return reflect.DeepEqual(w.item, other.item)
	}
}

// hasAttributes reports whether the item has all attributes of the key, with the same
// values.
func hasAttributes(item, key attributes) bool {
	for name, v := range key {
		if !reflect.DeepEqual(item[name], v) {
			return false
		}
	}
	return len(key) > 0
}
