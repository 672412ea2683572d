package dynamostore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/internal/lowlevel"
)

// Operation is a change that an operator made to a record. The record stores it.
type Operation struct {
	What    OperationKind
	By      string    // the operator's name
	Reason  string    // the operator's reason for the change
	At      time.Time // when it happened, by the database's clock, in whole milliseconds
	Attempt int       // the record's attempt number at that time
	Token   string    // the record's fencing token after the change; for OperationForgotten, a new token that becomes the record's only if the record was released
	Forced  bool      // whether the lease was live, so that the change needed OperatorOptions.Force
}

// OperationKind is the kind of a change that an operator made to a record.
type OperationKind string

// The kinds of operations.
const (
	OperationReleased  OperationKind = "released"  // the record was released: a retry runs the handler again
	OperationSettled   OperationKind = "settled"   // the record was completed with an answer that the operator chose
	OperationErased    OperationKind = "erased"    // the answer was deleted; the record stays completed
	OperationForgotten OperationKind = "forgotten" // the answer was deleted and the record expires soon; after that, a retry runs the handler again
)

// Each record has a list of operations: the changes that operators made to the record. These limits
// keep the list within 3.3 KB, because the cost of each replay depends on the record's size.
const (
	// MaxOperations is the maximum number of changes by operators in a record's list; see
	// [Operation]. The oldest changes are dropped.
	MaxOperations = 8
	// MaxOperator is the maximum length, in bytes, of the name of an operator: the person who
	// changes a record. See [Store.Operator].
	MaxOperator = 64
	// MaxReason is the maximum length, in bytes, of the reason that an operator gives for
	// changing a record.
	MaxReason = 256
)

// checkOperatorText returns an error unless text, an operator's name or reason, can be stored in a
// record. label is "name" or "reason", for the text of the error. maxLength is the maximum length
// in bytes.
func checkOperatorText(label, text string, maxLength int) error {
	switch {
	case strings.TrimSpace(text) == "":
		return fmt.Errorf("dynamostore: an operator's %s is empty; the record keeps it", label)
	case len(text) > maxLength:
		return fmt.Errorf("dynamostore: an operator's %s has %d bytes; a record keeps %d", label, len(text), maxLength)
	case validUTF8(text) != text:
		return fmt.Errorf("dynamostore: an operator's %s is not UTF-8", label)
	}
	return nil
}

// withOperation returns a copy of the list ops with the operation op appended. If the copy has more
// than MaxOperations operations, withOperation drops the oldest.
func withOperation(ops []Operation, op Operation) []Operation {
	all := append(slices.Clone(ops), op)
	return all[max(0, len(all)-MaxOperations):]
}

// operations is the attribute "operations", the list of what operators did to a record. If the
// list is empty, the attribute is absent.
type operations []Operation

// The members of an operation. The attribute "operations" is a list of maps with these members.
const (
	operationWhat    = "what"    // S
	operationBy      = "by"      // S
	operationReason  = "reason"  // S
	operationAt      = "at"      // N, epoch milliseconds
	operationAttempt = "attempt" // N
	operationToken   = "token"   // S
	operationForced  = "forced"  // BOOL; absent: false
)

func (o *operations) write() types.AttributeValue {
	if len(*o) == 0 {
		return nil
	}
	list := make([]types.AttributeValue, len(*o))
	for i, one := range *o {
		m := attributes{
			operationWhat: str(one.What), operationBy: str(one.By), operationReason: str(one.Reason), operationToken: str(one.Token),
			operationAt: number(one.At.UnixMilli()), operationAttempt: number(int64(one.Attempt)),
		}
		if one.Forced {
			m[operationForced] = &types.AttributeValueMemberBOOL{Value: true}
		}
		list[i] = &types.AttributeValueMemberM{Value: m}
	}
	return &types.AttributeValueMemberL{Value: list}
}

func (o *operations) read(v types.AttributeValue) string {
	list, ok := v.(*types.AttributeValueMemberL)
	if !ok {
		return "a list"
	}
	for _, element := range list.Value {
		m, ok := element.(*types.AttributeValueMemberM)
		if !ok {
			return "a list of operations"
		}
		one, ok := operationOf(m.Value)
		if !ok {
			return "a list of operations"
		}
		*o = append(*o, one)
	}
	return ""
}

// operationOf decodes one element of the list in the attribute "operations". It returns false if a
// member of the element is invalid.
func operationOf(m attributes) (_ Operation, ok bool) {
	var what, by, reason, token text
	var at, attempt integer
	ok = takeMember(m, operationWhat, &what) && takeMember(m, operationBy, &by) && takeMember(m, operationReason, &reason) &&
		takeMember(m, operationToken, &token) && takeMember(m, operationAt, &at) && takeMember(m, operationAttempt, &attempt)
	var forced bool
	if v := m[operationForced]; v != nil && ok {
		var b *types.AttributeValueMemberBOOL
		if b, ok = v.(*types.AttributeValueMemberBOOL); ok {
			forced = b.Value
		}
	}
	return Operation{
		What: OperationKind(what), By: string(by), Reason: string(reason), At: time.UnixMilli(at.n).UTC(),
		Attempt: int(attempt.n), Token: string(token), Forced: forced,
	}, ok
}

func (o *operations) present() bool                  { return len(*o) > 0 }
func (o *operations) size() int                      { return sizeOfValue(o.write()) }
func (o *operations) appendTo(b []byte) []byte       { return appendRare(b, o) }
func (o *operations) take(r *lowlevel.Reader) string { return takeRare(r, o) }
