package memdynamo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// DB is a DynamoDB of one account and Region. Use [New].
type DB struct {
	clock func() time.Time

	mu           sync.Mutex
	tables       map[string]*table
	requests     int
	transactions int // applied
	tokens       map[string]finishedTransaction
	tokensByAge  []string // of tokens, the oldest first
	onWrite      []func(Write)
}

// New returns an empty DB. The clock says when tables were created, what the Date of
// an answer is, which items TTL may delete, and how long a transaction's token
// is remembered.
func New(clock func() time.Time) *DB {
	return &DB{clock: clock, tables: map[string]*table{}, tokens: map[string]finishedTransaction{}}
}

// Write is one item's change. An absent item is nil.
type Write struct {
	Table  string
	Op     string // the operation, or "TTL" for a deletion by TTL
	Key    Item
	Before Item
	After  Item

	// Transaction is the same number, from 1 on, for the writes that one
	// TransactWriteItems applied, and another for another one's; 0 for a write
	// outside a transaction. They are reported one after the other, in the order
	// of the request, with no other write between. Condition checks, and deletes
	// of what was not there, are not writes.
	Transaction int
}

// OnWrite calls f after each write that was applied, an overwrite by equal
// content included. It is called while the request is being served: it must
// not call the DB.
func (db *DB) OnWrite(f func(Write)) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.onWrite = append(db.onWrite, f)
}

// Serve answers one request: op is what X-Amz-Target names after the version,
// body is the JSON. It may be called from many goroutines.
func (db *DB) Serve(op string, body []byte) (status int, header http.Header, out []byte) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.requests++
	requestID := fmt.Sprintf("WIRE%048d", db.requests) // as long as AWS's

	result, err := db.serve(op, body)
	if err != nil {
		status, header, out = errorReply(asAPIError(err), requestID)
	} else {
		status, header, out = reply(http.StatusOK, result, requestID)
	}
	header.Set("Date", db.clock().UTC().Format(http.TimeFormat))
	return status, header, out
}

func asAPIError(err error) *apiError {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e
	}
	return failf(Validation, "%s", err.Error())
}

func (db *DB) serve(op string, body []byte) (any, error) {
	switch op {
	case "CreateTable":
		return serve(body, db.createTable)
	case "DescribeTable":
		return serve(body, db.describeTable)
	case "UpdateTimeToLive":
		return serve(body, db.updateTimeToLive)
	case "DescribeTimeToLive":
		return serve(body, db.describeTimeToLive)
	case "PutItem":
		return serve(body, db.putItem)
	case "GetItem":
		return serve(body, db.getItem)
	case "UpdateItem":
		return serve(body, db.updateItem)
	case "DeleteItem":
		return serve(body, db.deleteItem)
	case "Scan":
		return serve(body, db.scan)
	case "TransactWriteItems":
		return serve(body, func(in transactWriteItemsRequest) (any, error) { return db.transactWriteItems(in, body) })
	}
	return nil, failf(UnknownOperation, "memdynamo does not speak the operation %q", op)
}

// serve decodes a request, strictly, and handles it.
func serve[In any](body []byte, handle func(In) (any, error)) (any, error) {
	var in In
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return nil, failf(Serialization, "memdynamo can't read the request: %v", err)
	}
	return handle(in)
}

// commit applies one write and tells who listens.
func (db *DB) commit(w Write, t *table) {
	k := t.encode(w.Key)
	if w.After == nil {
		delete(t.items, k)
	} else {
		t.items[k] = w.After
	}
	for _, f := range db.onWrite {
		f(w)
	}
}

// lookUp returns the table of that name, for an operation on items.
func (db *DB) lookUp(name string) (*table, error) {
	if err := checkTableName(name); err != nil {
		return nil, err
	}
	t, ok := db.tables[name]
	if !ok {
		return nil, failf(ResourceNotFound, "Requested resource not found")
	}
	return t, nil
}

// Item returns the item with that key, as it is now; ok is false where there is none
// or no such table. The key may be a whole item.
func (db *DB) Item(table string, key Item) (item Item, ok bool) {
	db.mu.Lock()
	defer db.mu.Unlock()
	t := db.tables[table]
	if t == nil {
		return nil, false
	}
	item, ok = t.items[t.encode(t.keyOf(key))]
	return maps.Clone(item), ok
}

// Items returns every item of the table in the order of its keys, TTL or not; none
// where there is no such table.
func (db *DB) Items(table string) []Item {
	db.mu.Lock()
	defer db.mu.Unlock()
	t := db.tables[table]
	if t == nil {
		return nil
	}
	items := t.sorted()
	for i := range items {
		items[i] = maps.Clone(items[i])
	}
	return items
}

// Expired returns the keys of the items that TTL may delete at the clock's now, in
// order. DynamoDB deletes some of them, at some time, days later or never; here
// nothing is deleted but by [DB.DeleteExpired].
func (db *DB) Expired(table string) []Item {
	db.mu.Lock()
	defer db.mu.Unlock()
	t := db.tables[table]
	if t == nil {
		return nil
	}
	var keys []Item
	for _, item := range t.sorted() {
		if t.expired(item, db.clock()) {
			keys = append(keys, t.keyOf(item))
		}
	}
	return keys
}

// DeleteExpired deletes an item as TTL does, and reports whether it did: not
// when TTL may not delete it (any more).
func (db *DB) DeleteExpired(table string, key Item) bool {
	db.mu.Lock()
	defer db.mu.Unlock()
	t := db.tables[table]
	if t == nil {
		return false
	}
	key = t.keyOf(key)
	item, ok := t.items[t.encode(key)]
	if !ok || !t.expired(item, db.clock()) {
		return false
	}
	db.commit(Write{Table: table, Op: "TTL", Key: key, Before: item}, t)
	return true
}

// sorted returns the table's items in the order of their keys.
func (t *table) sorted() []Item {
	return slices.SortedFunc(maps.Values(t.items), t.compareKeys)
}

// compareKeys orders two items by partition key, then by sort key.
func (t *table) compareKeys(a, b Item) int {
	for _, k := range t.keys {
		if c, _ := a[k.name].compare(b[k.name]); c != 0 {
			return c
		}
	}
	return 0
}
