package dynamostore

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Capture returns a context for a unit test of a handler, and a [Captured] that collects the writes
// that the handler enlists. The test calls the handler with this context. [Enlist] then works
// without a guard, and also with a guard whose store has no transactions, such as memstore. The
// writes are never sent to DynamoDB.
func Capture(ctx context.Context) (context.Context, *Captured) {
	c := &Captured{}
	return context.WithValue(ctx, captureKey{}, c), c
}

type captureKey struct{}

// Captured collects the writes that handlers enlist with a context from [Capture].
type Captured struct{ tx Tx }

// CapturedWrite is one enlisted write.
type CapturedWrite struct {
	Name   string                  // the name under which the write was enlisted
	Table  string                  // name or ARN
	Action types.TransactWriteItem // the action as it would be sent in the transaction
}

// Writes returns the writes in the order in which they were enlisted.
//
// The error is a [*WriteError] if a write could not be enlisted, or if DynamoDB would refuse it
// whatever the table contains. DynamoDB refuses, for example, a write that is too large, a second
// write to the same item, and an invalid expression. Only a real DynamoDB finds errors that depend
// on the tables, such as a wrong key.
func (c *Captured) Writes() ([]CapturedWrite, error) {
	c.tx.mu.Lock()
	defer c.tx.mu.Unlock()
	writes := make([]CapturedWrite, len(c.tx.writes))
	for i, w := range c.tx.writes {
		writes[i] = CapturedWrite{w.name, aws.ToString(w.table), w.action()}
	}
	if err := c.tx.validate(); err != nil {
		return writes, err
	}
	for _, w := range c.tx.writes {
		if err := w.validate(); err != nil {
			return writes, err
		}
	}
	return writes, nil
}

// Fail returns the error that the guarded call would fail with if the condition of the named write
// failed. The function that the handler passed to [Write.ElseFunc] receives item as the existing
// item. A nil item means that the table has none. Fail does not evaluate the condition. It panics
// if no write with that name was enlisted.
func (c *Captured) Fail(name string, item map[string]types.AttributeValue) error {
	c.tx.mu.Lock()
	w := c.tx.named(name)
	c.tx.mu.Unlock()
	if w == nil {
		panic(fmt.Sprintf("dynamostore: Captured.Fail: no write was enlisted as %q", name))
	}
	r := w.conditionFailed(item)
	if r.Verdict != nil {
		if err := r.Verdict(); err != nil {
			return err
		}
	}
	return r.Err
}
