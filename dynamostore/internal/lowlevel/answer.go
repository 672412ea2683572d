package lowlevel

import (
	"strings"
)

// The answers. Each function reads an answer's body, or reports false for one that
// it does not understand to the last character. What it returns may share its
// memory with the body.

// The members of an answer that have an item.
const (
	MemberItem       = "Item"       // of a GetItem
	MemberAttributes = "Attributes" // of an UpdateItem with ReturnValues
)

// Empty tells whether the answer is an object without members.
func Empty(body string) bool {
	r := reader{text: body}
	return r.take('{') && r.take('}') && r.end()
}

// Item reads an answer whose one member is an item. Without the member, the item
// is nil.
func Item(body, member string) (item Attributes, ok bool) {
	r := reader{text: body}
	ok = r.object(func(name string) bool {
		if name != member || item != nil {
			return false
		}
		var ok bool
		item, ok = r.attributes(0)
		return ok
	})
	return item, ok && r.end()
}

// ConditionFailed is DynamoDB's code for a write whose condition does not hold.
const ConditionFailed = "ConditionalCheckFailedException"

// Refusal reads the error answer of a write whose condition does not hold: its
// message, and the item that stood in the way; nil: it was not asked for, or there
// is none.
func Refusal(body string) (message string, item Attributes, ok bool) {
	r := reader{text: body}
	var code string
	var had struct{ code, message, item bool }
	ok = r.object(func(name string) (ok bool) {
		switch {
		case name == "__type" && !had.code:
			had.code = true
			code, ok = r.str()
		case (name == "message" || name == "Message") && !had.message:
			had.message = true
			message, ok = r.str()
		case name == "Item" && !had.item:
			had.item = true
			item, ok = r.attributes(0)
		}
		return ok
	})
	_, bare, found := strings.Cut(code, "#")
	if !found {
		bare = code
	}
	return message, item, ok && r.end() && bare == ConditionFailed
}
