package dynamostore

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/internal/lowlevel"
)

// This file converts items between three forms: the struct item, the SDK's map of
// attribute values, and DynamoDB's JSON.

// attributes returns the item as a map for the SDK, with the attribute names of this table.
func (l *layout) attributes(it *item) attributes {
	const most = 14 // most items have no more attributes; for a larger map, Go allocates twice the memory
	attrs := make(attributes, most)
	for i := range l {
		if l[i].name == "" {
			continue
		}
		if v := valueOf(itemAttributes[i].field(it)); v != nil {
			attrs[l[i].name] = v
		}
	}
	return attrs
}

// size returns the item's size in bytes, counted as DynamoDB counts it; see sizeOf.
func (l *layout) size(it *item) int {
	n := 0
	for i := range l {
		if l[i].name == "" {
			continue
		}
		if f := itemAttributes[i].field(it); f.present() {
			n += len(l[i].name) + f.size()
		}
	}
	return n
}

// parse decodes an item. It returns a foreignItemError if the item is not a record of this
// package or is damaged. Such an item must not be replayed, completed or taken over.
func (l *layout) parse(attrs attributes) (*item, error) {
	it := &item{}
	for i := range l {
		v := attrs[l[i].name]
		if v == nil {
			continue
		}
		if want := takeValue(itemAttributes[i].field(it), v); want != "" {
			return nil, foreign("its "+l[i].name+" is not "+want, attrs)
		}
	}
	why := it.strange()
	if why != "" && attrs[attrPart] != nil {
		why = "it is a part of an answer"
	}
	if why != "" {
		return nil, foreign(why, attrs)
	}
	return it, nil
}

// A taker is a function that decodes one attribute of an item. It reads the attribute's value
// from r, and reports whether the value was valid.
type taker = func(r *lowlevel.Reader, name string) bool

// read decodes the item in a response. It returns the item, or nil if the response
// has none. Its result ok is false if the response can't be read.
//
// The parameter scan is a function that reads the response and passes each attribute of the item
// to a taker. Its first result is true if the response has an item. Its second result is false
// if the response can't be read or the taker has returned false.
//
// This fast way of decoding can't say what is wrong with an item that is not a valid record. For
// such an item, the method calls scan again to get the attributes as a map, and calls parse with
// the map. It returns the error of parse as foreign.
func (l *layout) read(scan func(taker) (here, ok bool)) (_ *item, ok bool, foreign error) {
	it := &item{}
	var seen uint32
	here, ok := scan(func(r *lowlevel.Reader, name string) bool {
		i := l.column(name)
		if i < 0 {
			_, ok := r.Value()
			return ok
		}
		twice := seen&(1<<i) != 0
		seen |= 1 << i
		return !twice && itemAttributes[i].field(it).take(r) == ""
	})
	switch {
	case ok && !here:
		return nil, true, nil
	case ok && it.strange() == "":
		return it, true, nil
	}
	attrs := attributes{}
	if _, ok = scan(lowlevel.Into(attrs)); !ok || len(attrs) == 0 {
		return nil, ok, nil
	}
	it, foreign = l.parse(attrs)
	return it, true, foreign
}

// set reports whether one of the given updates changes attribute i of itemAttributes,
// that is, sets the attribute or removes it. set returns false if the table has no name
// for the attribute.
func (l *layout) set(i int, by updates) bool {
	return itemAttributes[i].setBy&by != 0 && l[i].name != ""
}

// column returns the index, in l and in itemAttributes, of the attribute that is called name in
// this table. It returns -1 if there is no such attribute.
func (l *layout) column(name string) int {
	for i := range l {
		if l[i].name == name && name != "" {
			return i
		}
	}
	return -1
}

// appendItem appends the item in DynamoDB's JSON.
func (l *layout) appendItem(b []byte, it *item) []byte {
	b = append(b, '{')
	for i := range l {
		if l[i].name == "" {
			continue
		}
		if f := itemAttributes[i].field(it); f.present() {
			if i > 0 { // attribute 0 is the id, which every item has
				b = append(b, ',')
			}
			b = append(lowlevel.AppendString(b, l[i].name), ':')
			b = f.appendTo(b)
		}
	}
	return append(b, '}')
}

// appendKey appends the primary key of the item with this id, in DynamoDB's JSON.
func (l *layout) appendKey(b []byte, id string) []byte {
	b = append(lowlevel.AppendString(append(b, '{'), l.id()), `:{"S":`...)
	b = append(lowlevel.AppendString(b, id), '}')
	if sortKey := l.sortKey(); sortKey != "" {
		b = append(lowlevel.AppendString(append(b, ','), sortKey), `:{"S":`...)
		b = append(lowlevel.AppendString(b, id), '}')
	}
	return append(b, '}')
}

// key returns the primary key of the item with this id, as a map for the SDK. The item may be
// a record or a part of an answer.
func (l *layout) key(id string) attributes {
	key := attributes{l.id(): str(id)}
	if l.sortKey() != "" {
		key[l.sortKey()] = str(id)
	}
	return key
}

// expression returns an UpdateExpression for the attributes that the given updates
// change. If the item has a value for an attribute, the UpdateExpression sets the attribute, and
// the method stores the value in the given map under the attribute's placeholder. Otherwise the
// UpdateExpression removes the attribute.
func (l *layout) expression(sets updates, it *item, values attributes) string {
	for i := range itemAttributes {
		if a := &itemAttributes[i]; l.set(i, sets) {
			if v := valueOf(a.field(it)); v != nil {
				values[l[i].value] = v
			}
		}
	}
	const enough = 512 // bytes; no expression of this package is longer
	return string(l.appendExpression(make([]byte, 0, enough), sets, it))
}

// appendExpression appends to b the UpdateExpression that the method expression returns. The
// text has only keywords and placeholders, so it needs no escaping in JSON.
func (l *layout) appendExpression(b []byte, sets updates, it *item) []byte {
	verb := "SET "
	for i := range itemAttributes {
		if a := &itemAttributes[i]; l.set(i, sets) && a.field(it).present() {
			b = append(append(b, verb...), l[i].assign...)
			verb = ", "
		}
	}
	verb = " REMOVE "
	for i := range itemAttributes {
		if a := &itemAttributes[i]; l.set(i, sets) && !a.field(it).present() {
			b = append(append(b, verb...), a.placeholder...)
			verb = ", "
		}
	}
	return b
}

// appendValues appends the values of the UpdateExpression's placeholders as members of a
// JSON object. It writes a comma before each member, because the object already has the
// values of the condition.
func (l *layout) appendValues(b []byte, sets updates, it *item) []byte {
	for i := range itemAttributes {
		if a := &itemAttributes[i]; l.set(i, sets) {
			if f := a.field(it); f.present() {
				b = append(append(append(b, `,"`...), l[i].value...), `":`...)
				b = f.appendTo(b)
			}
		}
	}
	return b
}

// headFor returns the beginning of the JSON of a request or of an action in a transaction: the
// table's name, the condition, the attribute names, and which item DynamoDB should return. This
// text is the same for all records, so it is encoded only once.
//
// The parameter returns is the request's ReturnValues. For an action, it is "", because an
// action that succeeds can't return an item.
func (w *write) headFor(table string, returns types.ReturnValue) string {
	var b []byte
	b = lowlevel.AppendString(append(b, `{"TableName":`...), table)
	b = lowlevel.AppendString(append(b, `,"ConditionExpression":`...), w.condition)
	b = lowlevel.AppendNames(append(b, `,"ExpressionAttributeNames":`...), w.names)
	if returns != "" && w.sets != 0 {
		b = lowlevel.AppendString(append(b, `,"ReturnValues":`...), string(returns))
	}
	return string(append(b, `,"ReturnValuesOnConditionCheckFailure":"ALL_OLD"`...))
}
