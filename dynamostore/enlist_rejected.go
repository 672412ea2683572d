package dynamostore

import (
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// ConditionFailed is the error of a transaction that failed because of the condition of an enlisted
// write. None of the transaction's writes was made.
type ConditionFailed struct {
	Write string // the name under which the write was enlisted
	Table string // the name or ARN of the table, as it was enlisted
	// Item is the existing item on which the condition failed. It is nil if the table has
	// no item with the write's key.
	Item map[string]types.AttributeValue
}

// Absent reports whether the table has no item with the write's key.
func (c *ConditionFailed) Absent() bool { return len(c.Item) == 0 }

// Decode decodes the existing item into v, which must be a non-nil pointer. It uses
// [attributevalue.UnmarshalMap].
func (c *ConditionFailed) Decode(v any) error { return attributevalue.UnmarshalMap(c.Item, v) }

// Error returns a message with the name of the write and its table, but without the item.
func (c *ConditionFailed) Error() string {
	how := "its item compares otherwise"
	if c.Absent() {
		how = "there is no such item"
	}
	return fmt.Sprintf("the condition of the write %q on table %s failed: %s", c.Write, c.Table, how)
}

// WriteError is the error of an enlisted write that can't be made because of a mistake
// in the program. None of the transaction's writes was made.
type WriteError struct {
	Write string // the name under which the write was enlisted; empty if the error concerns all writes together
	Err   error  // what is wrong with the write
}

// Error returns a message with the name of the write, if it has one, and the message of Err.
func (e *WriteError) Error() string {
	if e.Write == "" {
		return "the enlisted writes: " + e.Err.Error()
	}
	return fmt.Sprintf("the enlisted write %q: %v", e.Write, e.Err)
}

// Unwrap returns Err.
func (e *WriteError) Unwrap() error { return e.Err }

// conditionFailed returns the error of a transaction that failed because of the condition of w. The
// parameter item is the existing item, or nil if there is none.
func (w *Write) conditionFailed(item attributes) *lambdaidem.Rejected {
	c := &ConditionFailed{Write: w.name, Table: aws.ToString(w.table), Item: item}
	r := &lambdaidem.Rejected{Err: &lambdaidem.Error{Code: lambdaidem.ErrConditionFailed, Status: http.StatusInternalServerError, Err: c,
		Detail: "The request was not completed, because a condition that it requires is not met. Repeat it with the same key."}}
	if w.verdict != nil {
		r.Verdict = func() error { return w.verdict(c) }
	}
	return r
}

// writeInvalid returns the error of a transaction that can't be made because of a mistake
// in the program. err says what is wrong. The client receives 500 ErrWriteInvalid.
func writeInvalid(err error) *lambdaidem.Rejected {
	return &lambdaidem.Rejected{Err: &lambdaidem.Error{Code: lambdaidem.ErrWriteInvalid, Status: http.StatusInternalServerError, Err: err,
		Detail: "The request was not completed, because one of its writes is invalid."}}
}
