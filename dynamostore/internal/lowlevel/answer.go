package lowlevel

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/internal/jsonread"
)

// The functions below decode the body of a response. They return false unless they
// understand all of it. Their results may share memory with the body.

// Empty reports whether the body is a JSON object without members.
func Empty(body string) bool {
	r := Reader{jsonread.New(body)}
	return r.Take('{') && r.Take('}') && r.End()
}

// Item decodes a response with one optional member, an item, such as the response to a GetItem.
// memberName is the name of that member, such as "Item". hasItem reports whether the response has
// the item. ok is false if the response has any other member, or is not valid.
//
// For each attribute, Item calls readAttribute, which reads the attribute's value from r. If
// readAttribute returns false, the response is not valid.
func Item(body, memberName string, readAttribute func(r *Reader, name string) bool) (hasItem, ok bool) {
	r := Reader{jsonread.New(body)}
	ok = r.Object(func(name string) bool {
		if name != memberName || hasItem {
			return false
		}
		hasItem = true
		return r.Object(func(name string) bool { return readAttribute(&r, name) })
	})
	return hasItem, ok && r.End()
}

// Refusal decodes the error response to a write whose condition failed. If the response contains
// the existing item, Refusal calls readAttribute for each attribute of the item, as [Item] does.
// hasItem reports whether the response contains an item. ok is false if body is not the response to
// such a write, or if readAttribute returned false.
func Refusal(body string, readAttribute func(r *Reader, name string) bool) (hasItem, ok bool) {
	_, ok = failure(body, "ConditionalCheckFailedException", "Item", func(r *Reader) bool {
		hasItem = true
		return r.Object(func(name string) bool { return readAttribute(r, name) })
	})
	return hasItem, ok
}

// Cancellation decodes the error response to a cancelled transaction. It returns false if body is
// any other response.
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

// reason reads one element of CancellationReasons: why one action of a cancelled
// transaction failed, or that it did not fail.
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

// failure decodes an error response that has the given error code, and returns its message. The
// response may have one more member, named memberName, whose value readMember reads. ok is false
// for any other response, or if readMember returns false.
func failure(body, code, memberName string, readMember func(*Reader) bool) (message *string, ok bool) {
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
		case name == memberName && !had.member:
			had.member = true
			ok = readMember(&r)
		}
		return ok
	})
	if _, bare, qualified := strings.Cut(is, "#"); qualified {
		is = bare
	}
	return message, ok && r.End() && is == code
}

// Into returns a function that stores each attribute of an item in attrs, for the parameter
// readAttribute of [Item] or [Refusal]. The returned function returns false if a value is not
// valid, or if a name occurs twice.
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
