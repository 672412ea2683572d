package dynamostore

import (
	"github.com/lambdaidem/toolkit/dynamostore/internal/lowlevel"
)

// This file converts items between three forms: the struct item, the SDK's map of
// attribute values, and DynamoDB's JSON.

// attributes returns the item as a map for the SDK, with the attribute names of this table.
func (l *layout) attributes(itm *item) attributes {
	const most = 14 // most items have no more attributes; for a larger map, Go allocates twice the memory
	attrs := make(attributes, most)
	for i := range l {
		if l[i].name == "" {
			continue
		}
		if v := valueOf(itemAttributes[i].field(itm)); v != nil {
			attrs[l[i].name] = v
		}
	}
	return attrs
}

// parse decodes an item. It returns a foreignItemError if the item is not a record of this
// package or is damaged. Such an item must not be replayed, completed or taken over.
func (l *layout) parse(attrs attributes) (*item, error) {
	itm := &item{}
	for i := range l {
		v := attrs[l[i].name]
		if v == nil {
			continue
		}
		if want := takeValue(itemAttributes[i].field(itm), v); want != "" {
			return nil, foreign("its "+l[i].name+" is not "+want, attrs)
		}
	}
	reason := itm.strange()
	if reason != "" && attrs[attrPart] != nil {
		reason = "it is a part of an answer"
	}
	if reason != "" {
		return nil, foreign(reason, attrs)
	}
	return itm, nil
}

// A taker is a function that decodes one attribute of an item. It reads the attribute's value
// from r, and reports whether the value was valid.
type taker = func(r *lowlevel.Reader, name string) bool

// read decodes the item in a response. The function scan reads the response, and passes each
// attribute of the item to a taker. The results of scan say whether the response has an item, and
// whether the response can be read.
//
// The results of read are:
//   - the item and true, if it is a valid record
//   - nil and true, if the response has no item
//   - nil, true and an error, if the item is not a valid record
//   - nil and false, if the response can't be read
func (l *layout) read(scan func(taker) (here, ok bool)) (_ *item, ok bool, foreign error) {
	itm := &item{}
	var seen uint32
	here, ok := scan(func(r *lowlevel.Reader, name string) bool {
		i := l.column(name)
		if i < 0 {
			_, ok := r.Value()
			return ok
		}
		twice := seen&(1<<i) != 0
		seen |= 1 << i
		return !twice && itemAttributes[i].field(itm).take(r) == ""
	})
	switch {
	case ok && !here:
		return nil, true, nil
	case ok && itm.strange() == "":
		return itm, true, nil
	}
	// The item may be invalid. Scan the response again, into a map, so that parse can say what is
	// wrong.
	attrs := attributes{}
	if _, ok = scan(lowlevel.Into(attrs)); !ok || len(attrs) == 0 {
		return nil, ok, nil
	}
	itm, foreign = l.parse(attrs)
	return itm, true, foreign
}

// appendItem appends the item in DynamoDB's JSON.
func (l *layout) appendItem(b []byte, itm *item) []byte {
	b = append(b, '{')
	for i := range l {
		if l[i].name == "" {
			continue
		}
		if f := itemAttributes[i].field(itm); f.present() {
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
