package lowlevel

import "strings"

// The answers. Each function reads an answer's body, or reports false for one that
// it does not understand to the last character. What it returns may share its
// memory with the body.

// Empty tells whether the answer is an object without members.
func Empty(body string) bool {
	r := Reader{text: body}
	return r.take('{') && r.take('}') && r.end()
}

// Item reads an answer whose one member, if it has one, is an item. Each of its
// attributes goes to take, which takes the value from the reader. It tells whether
// there is an item.
func Item(body, member string, take func(r *Reader, name string) bool) (found, ok bool) {
	r := Reader{text: body}
	ok = r.object(func(name string) bool {
		if name != member || found {
			return false
		}
		found = true
		return r.object(func(name string) bool { return take(&r, name) })
	})
	return found, ok && r.end()
}

// Refusal reads the error answer of a write whose condition does not hold, and the
// item that stood in the way as [Item] does.
func Refusal(body string, take func(r *Reader, name string) bool) (found, ok bool) {
	r := Reader{text: body}
	var code string
	var had struct{ code, message bool }
	ok = r.object(func(name string) (ok bool) {
		switch {
		case name == "__type" && !had.code:
			had.code = true
			code, ok = r.str()
		case (name == "message" || name == "Message") && !had.message:
			had.message = true
			_, ok = r.str()
		case name == "Item" && !found:
			found = true
			ok = r.object(func(name string) bool { return take(&r, name) })
		}
		return ok
	})
	if _, bare, qualified := strings.Cut(code, "#"); qualified {
		code = bare
	}
	return found, ok && r.end() && code == conditionFailed
}

// conditionFailed is DynamoDB's code for a write whose condition does not hold.
const conditionFailed = "ConditionalCheckFailedException"

// Into is what takes the attributes of an item, whatever they are, into a map: see
// [Item].
func Into(attrs Attributes) func(*Reader, string) bool {
	return func(r *Reader, name string) bool {
		v, ok := r.Value()
		if _, twice := attrs[name]; !ok || twice {
			return false
		}
		attrs[name] = v
		return true
	}
}
