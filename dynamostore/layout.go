package dynamostore

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/internal/lowlevel"
)

// An item's two forms: attributes, as the SDK takes and gives them, and JSON, as it
// stands on the wire.

// attributes returns the item as the SDK takes it, under this table's names.
func (l *layout) attributes(it *item) attributes {
	const most = 14 // in one item, unless its answer is in parts; a map of more is twice the size
	attrs := make(attributes, most)
	for i := range l {
		if v := valueOf(itemAttributes[i].field(it)); v != nil {
			attrs[l[i].name] = v
		}
	}
	return attrs
}

// size returns the item's size in bytes: see sizeOf.
func (l *layout) size(it *item) int {
	n := 0
	for i := range l {
		if f := itemAttributes[i].field(it); f.here() {
			n += len(l[i].name) + f.size()
		}
	}
	return n
}

// parse reads an item. The error says in words why the item is not one of
// ours, or is damaged: it must not be replayed, completed or taken over.
func (l *layout) parse(attrs attributes) (*item, error) {
	it := &item{}
	for i := range l {
		v := attrs[l[i].name]
		if v == nil {
			continue
		}
		a := &itemAttributes[i]
		if want := takeValue(a.field(it), v); want != "" {
			return nil, foreign("its "+a.standard+" is not "+want, attrs)
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

// taker takes the attributes of an item from its text, one by one.
type taker = func(r *lowlevel.Reader, name string) bool

// read decodes the item of an answer; nil is none. It reports false for an answer that is
// not understood. An item that may not be a record is decoded once more, as attributes,
// for parse to say what is wrong with it.
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

// set reports whether the updates write the attribute at that place, or remove it.
func (l *layout) set(i int, by updates) bool {
	return itemAttributes[i].setBy&by != 0 && l[i].name != ""
}

// column returns the place of the attribute of that name; -1: there is none.
func (l *layout) column(name string) int {
	for i := range l {
		if l[i].name == name && name != "" {
			return i
		}
	}
	return -1
}

// appendItem writes the item.
func (l *layout) appendItem(b []byte, it *item) []byte {
	b = append(b, '{')
	for i := range l {
		if f := itemAttributes[i].field(it); f.here() {
			if i > 0 { // the id comes first, and is always there
				b = append(b, ',')
			}
			b = append(lowlevel.AppendString(b, l[i].name), ':')
			b = f.appendTo(b)
		}
	}
	return append(b, '}')
}

// appendKey writes the key of the item of that id.
func (l *layout) appendKey(b []byte, id string) []byte {
	b = append(lowlevel.AppendString(append(b, '{'), l.id()), `:{"S":`...)
	return append(lowlevel.AppendString(b, id), "}}"...)
}

// expression returns the UpdateExpression of what sets says: what the item has is set,
// its value going into values, and the rest is removed.
func (l *layout) expression(sets updates, it *item, values attributes) string {
	for i := range itemAttributes {
		if a := &itemAttributes[i]; l.set(i, sets) {
			if v := valueOf(a.field(it)); v != nil {
				values[l[i].value] = v
			}
		}
	}
	const enough = 512 // bytes, for any of them
	return string(l.appendExpression(make([]byte, 0, enough), sets, it))
}

// appendExpression writes the UpdateExpression: of placeholders alone, so that it
// is the same in JSON.
func (l *layout) appendExpression(b []byte, sets updates, it *item) []byte {
	verb := "SET "
	for i := range itemAttributes {
		if a := &itemAttributes[i]; l.set(i, sets) && a.field(it).here() {
			b = append(append(b, verb...), l[i].assign...)
			verb = ", "
		}
	}
	verb = " REMOVE "
	for i := range itemAttributes {
		if a := &itemAttributes[i]; l.set(i, sets) && !a.field(it).here() {
			b = append(append(b, verb...), a.placeholder...)
			verb = ", "
		}
	}
	return b
}

// appendValues writes what the expression's placeholders stand for, each with a
// comma before it.
func (l *layout) appendValues(b []byte, sets updates, it *item) []byte {
	for i := range itemAttributes {
		if a := &itemAttributes[i]; l.set(i, sets) {
			if f := a.field(it); f.here() {
				b = append(append(append(b, `,"`...), l[i].value...), `":`...)
				b = f.appendTo(b)
			}
		}
	}
	return b
}

// headFor returns what all requests of a write begin with: its table, its condition, and
// what it returns. An action of a transaction returns nothing.
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
