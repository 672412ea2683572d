package dynamostore

import (
	"errors"
	"fmt"
)

// DynamoDB's limits for one transaction (AWS, "Quotas in Amazon DynamoDB").
const (
	maxActions = 100     // the maximum number of actions, including the one that completes the record
	maxTxSize  = 4 << 20 // the maximum total size in bytes
)

// validate returns a WriteError if a write could not be enlisted, or if DynamoDB would refuse the
// writes whatever the tables contain: a write is incomplete, two writes are to the same item, or a
// limit is exceeded. Otherwise it returns nil. The caller must hold t.mu.
func (t *Tx) validate() error {
	if t.err != nil {
		return t.err
	}
	if n := len(t.writes); n > maxActions-1 {
		return &WriteError{Err: fmt.Errorf("there are %d; a transaction takes %d, and one of them is the record's", n, maxActions)}
	}
	size := 0
	for i, w := range t.writes {
		if err := w.incomplete(); err != nil {
			return &WriteError{Write: w.name, Err: err}
		}
		if n := sizeOf(w.item); n > maxItemSize {
			return &WriteError{Write: w.name, Err: fmt.Errorf("its item has %d bytes; DynamoDB keeps at most %d (400 KB, names included)", n, maxItemSize)}
		}
		size += sizeOf(w.item) + sizeOf(w.key) + sizeOf(w.values)
		for _, other := range t.writes[:i] {
			if w.sameItem(other) {
				return &WriteError{Write: w.name, Err: fmt.Errorf("it is to the same item as %q; a transaction takes one write for each item", other.name)}
			}
		}
	}
	if size > maxTxSize {
		return &WriteError{Err: fmt.Errorf("they have %d bytes; a transaction takes %d (4 MB)", size, maxTxSize)}
	}
	return nil
}

// validateFor is like validate, but also returns a WriteError if the writes can't be in one
// transaction with a record of the store s: if a table is in another Region or account, or if a
// write is to a record.
func (t *Tx) validateFor(s *Store) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.validate(); err != nil {
		return err
	}
	for _, w := range t.writes {
		if err := w.checkRegion(s); err != nil {
			return &WriteError{Write: w.name, Err: err}
		}
		if w.isRecord(s) {
			return &WriteError{Write: w.name, Err: errors.New("it is to an idempotency record, which is the guard's own")}
		}
	}
	return nil
}
