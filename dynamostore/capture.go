package dynamostore

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Capture returns a context in which [Enlist] works without a guard, or with one
// whose store has no transactions (memstore), and what a handler enlists there:
// for unit tests. Nothing is ever sent.
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

// Writes are the writes in the order in which they were enlisted. The error is
// what would keep them from being made.
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
	return writes, c.tx.problem()
}

// Fail is the error that the call would come to if the condition of the write of
// that name failed on the item; nil: on none. It panics if there is no such write.
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
