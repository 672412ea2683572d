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

// Operation is one thing that an operator did to a record, as the record keeps it.
type Operation struct {
	What    OperationKind
	By      string    // who did it
	Reason  string    // why
	At      time.Time // by the database's clock, whole milliseconds
	Attempt int       // the record's attempt number then
	Token   string    // the record's token from then on; of OperationForgotten, one that is new
	Forced  bool      // the lease was live: OperatorOptions.Force
}

// OperationKind is what an operator did.
type OperationKind string

// The operations.
const (
	OperationReleased  OperationKind = "released"  // a retry runs again
	OperationSettled   OperationKind = "settled"   // it was completed with an answer of the operator's
	OperationErased    OperationKind = "erased"    // its answer was taken away; it stays completed
	OperationForgotten OperationKind = "forgotten" // its answer was taken away, and it expired: a retry runs again
)

// The bounds of what a record keeps of operations: a replay pays for the record's
// size, so all of them have 3 KB at most.
const (
	// MaxOperations is how many operations a record keeps: the latest.
	MaxOperations = 8
	// MaxOperator is how long an operator's name may be, in bytes.
	MaxOperator = 64
	// MaxReason is how long a reason may be, in bytes.
	MaxReason = 256
)

// checkSaid reports whether a record can keep a text of an operator's.
func checkSaid(what, text string, most int) error {
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

// withOperation returns the operations with one more, the oldest dropped where there are
// too many.
func withOperation(before []Operation, one Operation) []Operation {
	all := append(slices.Clone(before), one)
	return all[max(0, len(all)-MaxOperations):]
}

// operations is a list; none is absent. It is rare, so package attributevalue
// writes and reads it.
type operations []Operation

// storedOperation is an Operation with the names that the item gives its members.
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
	if err != nil { // texts and numbers: can't happen
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

func (o *operations) here() bool                     { return len(*o) > 0 }
func (o *operations) size() int                      { return sizeOfValue(o.write()) }
func (o *operations) appendTo(b []byte) []byte       { return appendRare(b, o) }
func (o *operations) take(r *lowlevel.Reader) string { return takeRare(r, o) }
