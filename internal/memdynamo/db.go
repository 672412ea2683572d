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

// DB is the DynamoDB of one account in one Region. Use [New].
type DB struct {
	clock func() time.Time

	mu           sync.Mutex
	tables       map[string]*table
	requests     int
	transactions int // number of transactions that were applied
	tokens       map[string]finishedTransaction
	tokensByAge  []string // keys of tokens, the oldest first
	onWrite      []func(Write)
}

// New returns an empty DB. The clock determines the creation time of tables, the Date of replies,
// the items that TTL may delete, and how long a transaction's token is remembered.
func New(clock func() time.Time) *DB {
	return &DB{clock: clock, tables: map[string]*table{}, tokens: map[string]finishedTransaction{}}
}

// Write is the change of one item. Before or After is nil if the item was or is absent.
type Write struct {
	Table  string
	Op     string // the operation, or "TTL" for a deletion by TTL
	Key    Item
	Before Item
	After  Item

	// Transaction is the number, counted from 1, of the TransactWriteItems request that applied
	// this write, or 0 for a write outside a transaction. The writes of a transaction are
	// reported in the order of the request, with no other write in between. Condition checks and
	// deletes of absent items are not writes.
	Transaction int
}

// OnWrite registers f to be called after each applied write, including one that doesn't change
// the content. f is called while the request is being served, so it must not call the DB.
func (db *DB) OnWrite(f func(Write)) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.onWrite = append(db.onWrite, f)
}

// Serve answers one request. op is the name of the operation, which follows the version in
// X-Amz-Target, and body is the JSON body. Serve is safe for concurrent use.
func (db *DB) Serve(op string, body []byte) (status int, header http.Header, out []byte) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.requests++
	requestID := fmt.Sprintf("WIRE%048d", db.requests) // as long as a request ID of AWS

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

// serve decodes a request and handles it. An unknown field is an error.
func serve[In any](body []byte, handle func(In) (any, error)) (any, error) {
	var in In
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return nil, failf(Serialization, "memdynamo can't read the request: %v", err)
	}
	return handle(in)
}

// commit applies one write and calls the functions registered with OnWrite.
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

// lookUp returns the table with this name, for an operation on items. It returns an error, worded
// as for such operations, if the name is invalid or there is no such table.
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

// Item returns the current item with this key. ok is false if there is no such item or table. key
// may be a whole item.
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

// Items returns all items of the table in the order of their keys, including those that TTL may
// delete. It returns none if there is no such table.
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

// Expired returns the keys, in order, of the items that TTL may delete at the clock's current
// time. DynamoDB deletes such items days later or never. A DB deletes them only when
// [DB.DeleteExpired] is called.
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

// DeleteExpired deletes an item as TTL does. It returns false if TTL may not delete the item, or
// if there is no such item.
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
