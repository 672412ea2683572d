package lowlevel

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/internal/jsonread"
)

// The answers. Each function reads an answer's body, or reports false for one that
// it does not understand to the last character. What it returns may share its
// memory with the body.

// Empty reports whether the answer is an object without members.
func Empty(body string) bool {
	r := Reader{jsonread.New(body)}
	return r.Take('{') && r.Take('}') && r.End()
}

// Item reads an answer whose one member, if it has one, is an item. Each of its
// attributes goes to take, which takes the value from the reader. It reports whether
// there is an item.
func Item(body, member string, take func(r *Reader, name string) bool) (found, ok bool) {
	r := Reader{jsonread.New(body)}
	ok = r.Object(func(name string) bool {
		if name != member || found {
			return false
		}
		found = true
		return r.Object(func(name string) bool { return take(&r, name) })
	})
	return found, ok && r.End()
}

// Refusal reads the error answer of a write whose condition does not hold, and the
// item that stood in the way as [Item] does.
func Refusal(body string, take func(r *Reader, name string) bool) (found, ok bool) {
	_, ok = failure(body, "ConditionalCheckFailedException", "Item", func(r *Reader) bool {
		found = true
		return r.Object(func(name string) bool { return take(r, name) })
	})
	return found, ok
}

// Cancellation reads the error answer of a transaction that was cancelled.
func Cancellation(body string) (*types.TransactionCanceledException, bool) {
	e := &types.TransactionCanceledException{}
	message, ok := failure(body, "TransactionCanceledException", "CancellationReasons", func(r *Reader) bool {
		return r.Sequence('[', ']', func() bool {
			reason, ok := r.reason()
			e.CancellationReasons = append(e.CancellationReasons, reason)
			return ok
		})
	})
	e.Message = message
	return e, ok
}

// reason takes why one action of a transaction was in the way, or was not.
func (r *Reader) reason() (reason types.CancellationReason, ok bool) {
	ok = r.Object(func(name string) (ok bool) {
		var text string
		switch {
		case name == "Code" && reason.Code == nil:
			text, ok = r.Text()
			reason.Code = &text
		case name == "Message" && reason.Message == nil:
			text, ok = r.Text()
			reason.Message = &text
		case name == "Item" && reason.Item == nil:
			reason.Item, ok = r.attributes(0)
		}
		return ok
	})
	return reason, ok
}

// failure reads an error answer of that code, whose one member of its own goes to
// take. It returns the message.
func failure(body, code, member string, take func(*Reader) bool) (message *string, ok bool) {
	r := Reader{jsonread.New(body)}
	var is string
	var had struct{ code, member bool }
	ok = r.Object(func(name string) (ok bool) {
		switch {
		case name == "__type" && !had.code:
			had.code = true
			is, ok = r.Text()
		case (name == "message" || name == "Message") && message == nil:
			var text string
			text, ok = r.Text()
			message = &text
		case name == member && !had.member:
			had.member = true
			ok = take(&r)
		}
		return ok
	})
	if _, bare, qualified := strings.Cut(is, "#"); qualified {
		is = bare
	}
	return message, ok && r.End() && is == code
}

// Into returns what takes the attributes of an item, whatever they are, into a map: see
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
