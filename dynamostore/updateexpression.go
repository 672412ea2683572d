package dynamostore

// set reports whether an update in mask writes or removes attribute i of itemAttributes. It returns
// false if the table has no name for the attribute.
func (l *layout) set(i int, mask updates) bool {
	return itemAttributes[i].setBy&mask != 0 && l[i].name != ""
}

// expression returns the UpdateExpression for the attributes that the updates in mask change. If
// itm has a value for an attribute, the UpdateExpression sets the attribute, and expression stores
// the value in values under the attribute's placeholder. Otherwise the UpdateExpression removes the
// attribute.
func (l *layout) expression(mask updates, itm *item, values attributes) string {
	for i := range itemAttributes {
		if a := &itemAttributes[i]; l.set(i, mask) {
			if v := valueOf(a.field(itm)); v != nil {
				values[l[i].value] = v
			}
		}
	}
	const enough = 512 // bytes; no expression of this package is longer
	return string(l.appendExpression(make([]byte, 0, enough), mask, itm))
}

// appendExpression appends to b the UpdateExpression that layout.expression returns. The text has
// only keywords and placeholders, so it needs no escaping in JSON.
func (l *layout) appendExpression(b []byte, mask updates, itm *item) []byte {
	verb := "SET "
	for i := range itemAttributes {
		if a := &itemAttributes[i]; l.set(i, mask) && a.field(itm).present() {
			b = append(append(b, verb...), l[i].assign...)
			verb = ", "
		}
	}
	verb = " REMOVE "
	for i := range itemAttributes {
		if a := &itemAttributes[i]; l.set(i, mask) && !a.field(itm).present() {
			b = append(append(b, verb...), a.placeholder...)
			verb = ", "
		}
	}
	return b
}

// appendValues appends the values of the UpdateExpression's placeholders as members of a JSON
// object, each preceded by a comma: the object already has the values of the condition.
func (l *layout) appendValues(b []byte, mask updates, itm *item) []byte {
	for i := range itemAttributes {
		if a := &itemAttributes[i]; l.set(i, mask) {
			if f := a.field(itm); f.present() {
				b = append(append(append(b, `,"`...), l[i].value...), `":`...)
				b = f.appendTo(b)
			}
		}
	}
	return b
}
