package dynamostore

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Capture returns a context for unit tests of what a handler enlists, and the writes
// that it captures. Under that context [Enlist] works without a guard, and with one
// whose store has no transactions (memstore). Nothing is ever sent.
func Capture(ctx context.Context) (context.Context, *Captured) {
	c := &Captured{}
	return context.WithValue(ctx, captureKey{}, c), c
}

type captureKey struct{}

// Captured is what handlers enlisted.
type Captured struct{ tx Tx }

// CapturedWrite is one enlisted write.
type CapturedWrite struct {
	Name   string
	Table  string
	Action types.TransactWriteItem // as it would be sent
}

// Writes returns the writes in the order in which they were enlisted. Its error is a
// [*WriteError] that names a write DynamoDB would refuse whatever the table holds:
// one that is too large, the second one to an item, or one whose expression is
// invalid, has an undefined placeholder or leaves one unused. Tables, their keys and
// indexes are unknown here: only a test with DynamoDB finds a wrong key.
func (c *Captured) Writes() ([]CapturedWrite, error) {
	c.tx.mu.Lock()
	defer c.tx.mu.Unlock()
	writes := make([]CapturedWrite, len(c.tx.writes))
	for i, w := range c.tx.writes {
		writes[i] = CapturedWrite{w.name, aws.ToString(w.table), w.action()}
	}
	if c.tx.err != nil {
		return writes, c.tx.err
	}
	if err := c.tx.problem(); err != nil {
		return writes, err
	}
	for _, w := range c.tx.writes {
		if err := w.validate(); err != nil {
			return writes, err
		}
	}
	return writes, nil
}

// Fail returns the error that the call would end with if the condition of the named
// write failed on the item; a nil item means that there was none. Fail doesn't evaluate
// the condition: it assumes that it failed. It panics if there is no such write.
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
