package dynamostore

import (
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// ConditionFailed is the error of a transaction in which the condition of an enlisted
// write failed. Nothing was written.
type ConditionFailed struct {
	Write string // the name under which the write was enlisted
	Table string
	// Item is the item on which the condition failed, or nil if there is no item.
	Item map[string]types.AttributeValue
}

// Absent reports whether there is no item.
func (c *ConditionFailed) Absent() bool { return len(c.Item) == 0 }

// Decode decodes the item into v, as package attributevalue does.
func (c *ConditionFailed) Decode(v any) error { return attributevalue.UnmarshalMap(c.Item, v) }

// Error names the write and its table. It does not reveal the content of the item.
func (c *ConditionFailed) Error() string {
	how := "its item compares otherwise"
	if c.Absent() {
		how = "there is no such item"
	}
	return fmt.Sprintf("the condition of the write %q on table %s failed: %s", c.Write, c.Table, how)
}

// WriteError is the error of an enlisted write that can't be made because of a mistake
// in the program. Nothing was written.
type WriteError struct {
	Write string // the name under which the write was enlisted; empty if the error concerns all writes together
	Err   error
}

// Error names the write and returns the text of Err.
func (e *WriteError) Error() string {
	if e.Write == "" {
		return "the enlisted writes: " + e.Err.Error()
	}
	return fmt.Sprintf("the enlisted write %q: %v", e.Write, e.Err)
}

// Unwrap returns Err.
func (e *WriteError) Unwrap() error { return e.Err }

// conditionFailed returns the error of a transaction in which the write's condition
// failed on item.
func (w *Write) conditionFailed(item attributes) *lambdaidem.Rejected {
	c := &ConditionFailed{Write: w.name, Table: aws.ToString(w.table), Item: item}
	r := &lambdaidem.Rejected{Err: &lambdaidem.Error{Code: lambdaidem.ErrConditionFailed, Status: http.StatusInternalServerError, Err: c,
		Detail: "Nothing that the request would have written was written, since what it depends on is not as it should be. Repeat it with the same key."}}
	if w.verdict != nil {
		r.Verdict = func() error { return w.verdict(c) }
	}
	return r
}

// writeInvalid returns the error of a transaction with a write that can't be made.
func writeInvalid(err error) *lambdaidem.Rejected {
	return &lambdaidem.Rejected{Err: &lambdaidem.Error{Code: lambdaidem.ErrWriteInvalid, Status: http.StatusInternalServerError, Err: err,
		Detail: "The request was not carried out, since what it would write can't be written."}}
}
