package dynamostore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
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

// The limits of the operations in a record. They keep all operations of a record within 3 KB,
// because the cost of each replay depends on the record's size.
const (
	// MaxOperations is the maximum number of operations in a record. Older ones are
	// dropped.
	MaxOperations = 8
	// MaxOperator is the maximum length of an operator's name, in bytes.
	MaxOperator = 64
	// MaxReason is the maximum length, in bytes, of the reason that an operator gives for
	// changing a record.
	MaxReason = 256
)

// checkOperatorText returns an error unless an operator's name or reason can be stored in a
// record. The parameter what is "name" or "reason", for the text of the error. The parameter
// most is the maximum length in bytes.
func checkOperatorText(what, text string, most int) error {
	switch {
	case strings.TrimSpace(text) == "":
		return fmt.Errorf("dynamostore: an operator's %s is empty; the record keeps it", what)
	case len(text) > most:
		return fmt.Errorf("dynamostore: an operator's %s has %d bytes; a record keeps %d", what, len(text), most)
	case validUTF8(text) != text:
		return fmt.Errorf("dynamostore: an operator's %s is not UTF-8", what)
	}
	return nil
}

// withOperation returns a copy of the operations with one more appended. It drops the
// oldest ones if there are more than MaxOperations.
func withOperation(before []Operation, one Operation) []Operation {
	all := append(slices.Clone(before), one)
	return all[max(0, len(all)-MaxOperations):]
}

// operations is the attribute "operations", the list of what operators did to a record. If the
// list is empty, the attribute is absent. Few records have the attribute, so package
// attributevalue encodes and decodes it.
type operations []Operation

// storedOperation is the form in which an Operation is stored in the attribute "operations".
// The tags are the names of the stored members.
type storedOperation struct {
	What    OperationKind `dynamodbav:"what"`
	By      string        `dynamodbav:"by"`
	Reason  string        `dynamodbav:"reason"`
	At      int64         `dynamodbav:"at"` // epoch milliseconds
	Attempt int           `dynamodbav:"attempt"`
	Token   string        `dynamodbav:"token"`
	Forced  bool          `dynamodbav:"forced,omitempty"`
}

func (o *operations) write() types.AttributeValue {
	if len(*o) == 0 {
		return nil
	}
	stored := make([]storedOperation, len(*o))
	for i, one := range *o {
		stored[i] = storedOperation{one.What, one.By, one.Reason, one.At.UnixMilli(), one.Attempt, one.Token, one.Forced}
	}
	v, err := attributevalue.Marshal(stored)
	if err != nil { // can't happen: strings and numbers can always be encoded
		panic(err)
	}
	return v
}

func (o *operations) read(v types.AttributeValue) string {
	var stored []storedOperation
	if _, ok := v.(*types.AttributeValueMemberL); !ok {
		return "a list"
	}
	if err := attributevalue.Unmarshal(v, &stored); err != nil {
		return "a list of operations: " + err.Error()
	}
	for _, one := range stored {
		*o = append(*o, Operation{one.What, one.By, one.Reason, time.UnixMilli(one.At).UTC(), one.Attempt, one.Token, one.Forced})
	}
	return ""
}

func (o *operations) present() bool                  { return len(*o) > 0 }
func (o *operations) size() int                      { return sizeOfValue(o.write()) }
func (o *operations) appendTo(b []byte) []byte       { return appendRare(b, o) }
func (o *operations) take(r *lowlevel.Reader) string { return takeRare(r, o) }
