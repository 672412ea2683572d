package dynamostore

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// DynamoDB's limits for one transaction (AWS, "Quotas in Amazon DynamoDB").
const (
	maxActions = 100     // the maximum number of actions, including the one that completes the record
	maxTxSize  = 4 << 20 // the maximum total size in bytes
)

// problem returns a WriteError if DynamoDB would refuse the writes whatever the tables
// contain: a write is incomplete, two writes are to the same item, or a limit is exceeded.
// The checks that need a store are in t.invalid, which also calls problem. The caller must
// hold t.mu.
func (t *Tx) problem() error {
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

// incomplete returns an error if the write has no item, key or expression although its
// kind needs it, or has an attribute value that can't be sent. The SDK would refuse to
// send such a write, or would send it without what is missing.
func (w *Write) incomplete() error {
	switch {
	case w.kind == aPut && len(w.item) == 0:
		return errors.New("it has no item")
	case w.kind != aPut && len(w.key) == 0:
		return errors.New("it has no key")
	case w.kind == anUpdate && aws.ToString(w.update) == "":
		return errors.New("it has no update expression")
	case w.kind == aCheck && w.condition == nil:
		return errors.New("it has no condition")
	case w.condition != nil && *w.condition == "":
		return errors.New("its condition is empty")
	}
	for _, attrs := range []attributes{w.item, w.key, w.values} {
		for name, v := range attrs {
			switch v.(type) {
			case nil:
				return fmt.Errorf("%s has a nil value", name)
			case *types.UnknownUnionMember:
				return fmt.Errorf("%s has a value of an unknown type", name)
			}
		}
	}
	return nil
}

// invalid returns a WriteError if Tx could not enlist one of the writes, or if the writes
// can't be made in one transaction with a record of the store s.
func (t *Tx) invalid(s *Store) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return t.err
	}
	if err := t.problem(); err != nil {
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

// sameItem reports whether two writes are certainly to the same item. A put does not say
// which of its attributes are the key. If the other write has a key, sameItem compares
// that key with the attributes of the put. Two puts are to the same item if all their
// attributes are equal. Two puts with equal keys and different other attributes are also to
// the same item, but sameItem can't detect that.
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

// isRecord reports whether the write is to an idempotency record of the store s, or to an
// item with a part of a large answer. Handlers must not write those.
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

// checkRegion returns an error if the write's table is in another Region or account than the
// store, because a transaction can't span them. A table that is given by its name is
// always in the client's account and Region. A table that is given by its ARN is compared
// with the client's Region, and with the account in the ARN of the store's table. If the
// store's table is given by its name, the account is unknown and is not compared.
func (w *Write) checkRegion(s *Store) error {
	if !arn.IsARN(aws.ToString(w.table)) {
		return nil // a name refers to a table in the client's account and Region
	}
	table, _ := arn.Parse(*w.table) // can't fail after IsARN
	if region := s.wire.SDK().Options().Region; table.Region != region {
		return fmt.Errorf("its table is in Region %s; a transaction takes tables of one account and Region, and the store's is %s", table.Region, region)
	}
	if own, err := arn.Parse(s.table); err == nil && own.AccountID != table.AccountID {
		return fmt.Errorf("its table is of account %s; a transaction takes tables of one account and Region, and the record's is of %s", table.AccountID, own.AccountID)
	}
	return nil
}

// tableName returns the name of a table that is given by its name or its ARN. It returns ""
// if table is nil.
func tableName(table *string) string {
	name := aws.ToString(table)
	if !arn.IsARN(name) {
		return name
	}
	parsed, _ := arn.Parse(name) // can't fail after IsARN
	return strings.TrimPrefix(parsed.Resource, "table/")
}
