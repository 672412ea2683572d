package memdynamo

import (
	"slices"
)

const (
	maxItemSize = 400 << 10 // bytes ("Constraints", Item size)
	maxPageSize = 1 << 20   // bytes of items that one Scan reads
)

// expressionParameters has the parameters that all operations on items share.
type expressionParameters struct {
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues map[string]Value
	ReturnConsumedCapacity    string
}

// writeParameters has the parameters that all writes share.
type writeParameters struct {
	expressionParameters
	ConditionExpression                 *string
	ReturnValues                        string
	ReturnValuesOnConditionCheckFailure string
	ReturnItemCollectionMetrics         string // AWS returns metrics only for tables with local secondary indexes
}

type putItemRequest struct {
	TableName string
	Item      Item
	writeParameters
}

type getItemRequest struct {
	TableName            string
	Key                  Item
	ConsistentRead       bool // ignored, except for the capacity: every read is consistent
	ProjectionExpression *string
	expressionParameters
}

type updateItemRequest struct {
	TableName        string
	Key              Item
	UpdateExpression *string
	writeParameters
}

type deleteItemRequest struct {
	TableName string
	Key       Item
	writeParameters
}

type writeResult struct {
	Attributes       Item      `json:",omitempty"`
	ConsumedCapacity *capacity `json:",omitempty"`
}

// bound has the expressions of a write, ready to be evaluated.
type bound struct {
	condition condition // nil if there is none
	update    *update   // nil if there is none
	paths     []path    // paths in the condition
	values    map[string]Value
}

// bind checks the parameters of a write and binds its expressions. It returns an error for
// everything that DynamoDB refuses regardless of the table's content.
func (w writeParameters) bind(update expression) (b bound, err error) {
	condition := expression{"ConditionExpression", w.ConditionExpression}
	valued := []expression{condition}
	allowed := []string{"NONE", "ALL_OLD"}
	if update.kind != "" {
		valued = []expression{update, condition}
		allowed = []string{"ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW"}
	}
	if err := w.checkChoices(allowed); err != nil {
		return b, err
	}
	s, err := newScope(w.ExpressionAttributeNames, w.ExpressionAttributeValues, nil, valued...)
	if err != nil {
		return b, err
	}
	b.values = s.values
	if update.source != nil {
		if b.update, err = bindUpdate(*update.source, s); err != nil {
			return b, update.refuse(err)
		}
	}
	if condition.source != nil {
		if b.condition, b.paths, err = bindCondition(*condition.source, s); err != nil {
			return b, condition.refuse(err)
		}
	}
	return b, s.checkUsed()
}

// checkChoices returns an error if a parameter with fixed values is present and has another
// value.
func (w writeParameters) checkChoices(returnValues []string) error {
	if w.ReturnValues != "" && !slices.Contains(returnValues, w.ReturnValues) {
		return invalidf("Return values set to invalid value")
	}
	if err := checkChoice("returnValuesOnConditionCheckFailure", w.ReturnValuesOnConditionCheckFailure, "ALL_OLD", "NONE"); err != nil {
		return err
	}
	if err := checkChoice("returnItemCollectionMetrics", w.ReturnItemCollectionMetrics, "SIZE", "NONE"); err != nil {
		return err
	}
	return w.checkCapacity()
}

func (e expressionParameters) checkCapacity() error {
	return checkChoice("returnConsumedCapacity", e.ReturnConsumedCapacity, "INDEXES", "TOTAL", "NONE")
}

// meets evaluates the condition of a write on the current item. It returns a
// ConditionalCheckFailedException if the condition does not hold.
func (b bound) meets(before Item, w writeParameters) error {
	if b.condition == nil || b.condition(before) {
		return nil
	}
	e := failf(ConditionalCheckFailed, conditionFailed)
	if w.ReturnValuesOnConditionCheckFailure == "ALL_OLD" {
		e.item = before
	}
	return e
}

// written commits a write and returns its reply, with the given attributes.
func (db *DB) written(t *table, w Write, attributes Item, p writeParameters) (any, error) {
	if w.Before != nil || w.After != nil {
		db.commit(w, t)
	}
	units := writeUnits(w.Before, w.After)
	return writeResult{Attributes: attributes, ConsumedCapacity: consumed(t, p.ReturnConsumedCapacity, units)}, nil
}

func (db *DB) putItem(in putItemRequest) (any, error) {
	if in.Item == nil {
		return nil, invalidf("1 validation error detected: Value null at 'item' failed to satisfy constraint: Member must not be null")
	}
	item, err := checkedItem(in.Item)
	if err != nil {
		return nil, err
	}
	b, err := in.bind(expression{})
	if err != nil {
		return nil, err
	}
	t, err := db.lookUp(in.TableName)
	if err != nil {
		return nil, err
	}
	if err := t.checkItem(item); err != nil {
		return nil, err
	}
	if err := t.checkPaths(b.paths); err != nil {
		return nil, err
	}
	if item.Size() > maxItemSize {
		return nil, invalidf("Item size has exceeded the maximum allowed size")
	}
	key := t.keyOf(item)
	before := t.items[t.encode(key)]
	if err := b.meets(before, in.writeParameters); err != nil {
		return nil, err
	}
	var attributes Item
	if in.ReturnValues == "ALL_OLD" {
		attributes = before
	}
	return db.written(t, Write{Table: t.name, Op: "PutItem", Key: key, Before: before, After: item}, attributes, in.writeParameters)
}

func (db *DB) deleteItem(in deleteItemRequest) (any, error) {
	b, err := in.bind(expression{})
	if err != nil {
		return nil, err
	}
	t, key, err := db.keyed(in.TableName, in.Key)
	if err != nil {
		return nil, err
	}
	if err := t.checkPaths(b.paths); err != nil {
		return nil, err
	}
	before := t.items[t.encode(key)]
	if err := b.meets(before, in.writeParameters); err != nil {
		return nil, err
	}
	var attributes Item
	if in.ReturnValues == "ALL_OLD" {
		attributes = before
	}
	return db.written(t, Write{Table: t.name, Op: "DeleteItem", Key: key, Before: before}, attributes, in.writeParameters)
}

func (db *DB) updateItem(in updateItemRequest) (any, error) {
	b, err := in.bind(expression{"UpdateExpression", in.UpdateExpression})
	if err != nil {
		return nil, err
	}
	t, key, err := db.keyed(in.TableName, in.Key)
	if err != nil {
		return nil, err
	}
	if err := t.checkPaths(b.paths); err != nil {
		return nil, err
	}
	var written projection
	if b.update != nil {
		written = b.update.paths()
	}
	if err := t.checkWritten(written); err != nil {
		return nil, err
	}
	before := t.items[t.encode(key)]
	if err := b.meets(before, in.writeParameters); err != nil {
		return nil, err
	}
	after, err := updated(key, before, b.update)
	if err != nil {
		return nil, err
	}
	return db.written(t, Write{Table: t.name, Op: "UpdateItem", Key: key, Before: before, After: after},
		returned(in.ReturnValues, before, after, written), in.writeParameters)
}

// updated returns the item after the update, or nil if the item stays absent.
func updated(key, before Item, u *update) (Item, error) {
	start := before
	if start == nil {
		start = key
	}
	if u == nil {
		return start, nil
	}
	after, err := u.apply(start)
	if err != nil {
		return nil, err
	}
	if before == nil && !u.creates() {
		return nil, nil
	}
	if after.Size() > maxItemSize {
		return nil, invalidf("Item size to update has exceeded the maximum allowed size")
	}
	return after, nil
}

// returned returns the attributes that an UpdateItem returns for its ReturnValues.
func returned(choice string, before, after Item, written projection) Item {
	switch choice {
	case "ALL_OLD":
		return before
	case "ALL_NEW":
		return after
	case "UPDATED_OLD":
		return written.of(before)
	case "UPDATED_NEW":
		return written.of(after)
	}
	return nil
}

// keyed returns the table and the checked key of a request.
func (db *DB) keyed(name string, key Item) (*table, Item, error) {
	if key == nil {
		return nil, nil, invalidf("1 validation error detected: Value null at 'key' failed to satisfy constraint: Member must not be null")
	}
	key, err := checkedItem(key)
	if err != nil {
		return nil, nil, err
	}
	t, err := db.lookUp(name)
	if err != nil {
		return nil, nil, err
	}
	return t, key, t.checkKey(key)
}

func (db *DB) getItem(in getItemRequest) (any, error) {
	if err := in.checkCapacity(); err != nil {
		return nil, err
	}
	p, err := in.project(in.ProjectionExpression)
	if err != nil {
		return nil, err
	}
	t, key, err := db.keyed(in.TableName, in.Key)
	if err != nil {
		return nil, err
	}
	if err := t.checkPaths(p); err != nil {
		return nil, err
	}
	item, ok := t.items[t.encode(key)]
	units := readUnits(item.Size(), in.ConsistentRead)
	if ok && p != nil {
		item = p.of(item)
	}
	type result struct {
		Item             *Item     `json:",omitempty"` // a pointer, so that an empty projection is encoded too
		ConsumedCapacity *capacity `json:",omitempty"`
	}
	out := result{ConsumedCapacity: consumed(t, in.ReturnConsumedCapacity, units)}
	if ok {
		out.Item = &item
	}
	return out, nil
}

// project binds the projection of a request that has no other expression. It returns nil if there
// is none.
func (e expressionParameters) project(source *string) (projection, error) {
	s, err := newScope(e.ExpressionAttributeNames, e.ExpressionAttributeValues, source)
	if err != nil || source == nil {
		return nil, err
	}
	p, err := bindProjection(*source, s)
	if err != nil {
		return nil, expression{kind: "ProjectionExpression"}.refuse(err)
	}
	return p, s.checkUsed()
}

// checkChoice returns an error if a parameter is present and is none of the words.
func checkChoice(name, value string, words ...string) error {
	if value == "" || slices.Contains(words, value) {
		return nil
	}
	return invalidf("1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: Member must satisfy enum value set: %v", value, name, words)
}
