package dynamostore

import (
	"strings"
)

// layout has the names of the attributes in one table, in the order of itemAttributes.
type layout [len(itemAttributes)]column

type column struct {
	name   string // the attribute's name in the table; "" if this store neither reads nor writes the attribute
	value  string // the placeholder of the attribute's new value, such as ":status"
	assign string // the clause of an UpdateExpression, such as "#status = :status"
}

// renaming describes an option, such as Options.IDAttribute, that renames an attribute.
type renaming struct {
	field string                 // the field's name, for errors
	name  func(*Options) *string // returns a pointer to the field
}

// layout returns the names that the attributes of records have in a table with these options.
func (o *Options) layout() *layout {
	l := &layout{}
	for i := range itemAttributes {
		a := &itemAttributes[i]
		if a.standard == attrLeaseShard && o.LeaseIndex == "" {
			continue // without the index, records don't have this attribute
		}
		value := ":" + a.placeholder[1:]
		l[i] = column{name: a.standard, value: value, assign: a.placeholder + " = " + value}
		if a.option != nil {
			l[i].name = *a.option.name(o)
		}
	}
	return l
}

// id returns the name of the partition key in this table.
func (l *layout) id() string { return l[0].name }

// sortKey returns the name of the sort key in this table, or "" if the table has none.
func (l *layout) sortKey() string { return l[1].name }

// nameOf returns the name that the attribute with the given standard name has in this table.
func (l *layout) nameOf(standard string) string {
	for i := range itemAttributes {
		if itemAttributes[i].standard == standard {
			return l[i].name
		}
	}
	panic("no attribute is called " + standard)
}

// names returns the ExpressionAttributeNames of a request that makes the given updates under the
// given condition. It includes only the placeholders that occur in the request's expressions,
// because DynamoDB refuses a request with an unused placeholder.
func (l *layout) names(sets updates, condition string) map[string]string {
	names := map[string]string{}
	for i := range itemAttributes {
		if a := &itemAttributes[i]; l[i].name != "" && (a.setBy&sets != 0 || mentions(condition, a.placeholder)) {
			names[a.placeholder] = l[i].name
		}
	}
	return names
}

// mentions reports whether the condition uses the placeholder. A longer placeholder with
// the same beginning does not count: "#started_at" does not mention "#start".
func mentions(condition, placeholder string) bool {
	for rest := condition; ; {
		_, after, found := strings.Cut(rest, placeholder)
		if !found {
			return false
		}
		if after == "" || strings.IndexByte(" (),", after[0]) >= 0 {
			return true
		}
		rest = after
	}
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
