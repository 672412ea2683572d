package dynamostore

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// update sends a conditional update. It reports true if the update was applied, by the last try or
// by an earlier one whose reply was lost, or if the record no longer exists. It reports false if
// the condition failed because the record has changed since it was read.
func (p *purge) update(ctx context.Context, c *attributeUpdate, newItm *item, values attributes) (bool, error) {
	out, fate, err := p.o.s.updateAttributes(ctx, c, newItm, values)
	if refused, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		// The error doesn't say how many units the refused write consumed, which depends
		// on the item's size. Count the minimum.
		return len(refused.Item) == 0 || p.o.s.wasApplied(refused.Item, newItm), p.spend(ctx, 1)
	}
	if err != nil {
		return false, failed(opPurge, fate, err)
	}
	return true, p.spend(ctx, unitsOf(out.ConsumedCapacity))
}

// updateAsSeen sets the attributes attrs of a record to their values in newItm. If newItm has no
// value for an attribute, updateAsSeen removes the attribute. The write is conditional:
// updateAsSeen reports false if the record no longer has the token and the state of oldItm.
func (p *purge) updateAsSeen(ctx context.Context, newItm, oldItm *item, attrs ...string) (bool, error) {
	return p.update(ctx, &attributeUpdate{also: attrs, condition: isAsSeen}, newItm, oldItm.asSeen())
}

// isAsSeen is a condition that holds if the record has the same token and state as when it
// was read. It fails if an attempt has taken the record over since, because the record then
// has another token.
const isAsSeen = "#token = :seen_token AND #status = :seen_state"

func (itm *item) asSeen() attributes {
	return attributes{":seen_token": str(itm.Token), ":seen_state": str(itm.Status)}
}

// wasApplied reports whether an earlier try of a refused write was applied, although its reply was
// lost. newItm has the values that the write stores, and current is the item in the table. The
// write was applied if current contains the Operation that the write appends, the last one in
// newItm. If the write appends none, wasApplied returns false.
func (s *Store) wasApplied(current attributes, newItm *item) bool {
	itm, err := s.layout.parse(current)
	n := len(newItm.Operations)
	return err == nil && n > 0 && slices.ContainsFunc(itm.Operations, func(did Operation) bool {
		last := newItm.Operations[n-1]
		return did.What == last.What && did.Token == last.Token && did.At.Equal(last.At)
	})
}
