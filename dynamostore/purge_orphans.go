package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// storedPart describes an item that holds one part of an answer. It does not contain the
// part's bytes.
type storedPart struct {
	id        string    // the partition key of the item
	record    string    // the id of the record that the answer belongs to
	token     string    // the fencing token of the attempt that wrote the part
	scope     string    // the scope of the record; "" if it is unknown
	writtenAt time.Time // when the attempt wrote the part, by the attempt's clock
}

// parsePart reads an item that holds a part of an answer. It reports false for any other
// item.
func (l *layout) parsePart(attrs attributes) (storedPart, bool) {
	origin, ok := attrs[attrPart].(*types.AttributeValueMemberM)
	if !ok {
		return storedPart{}, false
	}
	var id, record, token, scope text
	var written integer
	for _, one := range []struct {
		from attributes
		name string
		into field
	}{
		{attrs, l.id(), &id}, {origin.Value, partRecord, &record}, {origin.Value, partToken, &token},
		{origin.Value, partScope, &scope}, {origin.Value, partWritten, &written},
	} {
		if v := one.from[one.name]; v != nil && takeValue(one.into, v) != "" {
			return storedPart{}, false
		}
	}
	if token == "" || !strings.HasPrefix(string(id), string(record)+"#") {
		return storedPart{}, false
	}
	return storedPart{id: string(id), record: string(record), token: string(token), scope: string(scope), writtenAt: fromMillis(written)}, true
}

// orphanAge is the age at which a part that no record refers to is certainly an orphan; see
// isOrphan. After an attempt has written the parts, it tries for at most 15 minutes to complete the
// record. AWS accepts a delayed request until 15 minutes after it was signed. The rest of the hour
// allows for clocks that differ.
const orphanAge = time.Hour

// isOrphan reports whether a purge may delete the part, to which no record refers: no attempt and
// no operator can still complete the record with an answer that has the part. itm is the record as
// it is now, or nil if there is none. now is the database's time, and maxSkew is Options.MaxSkew.
func (part *storedPart) isOrphan(itm *item, now time.Time, maxSkew time.Duration) bool {
	// An attempt whose clock is ahead may already treat the record as expired, and write the parts
	// of a new answer. One second is added because now is rounded down.
	if itm != nil && !itm.record().GoneAt(now.Add(maxSkew+time.Second)) {
		// An attempt's answer is never replaced, so this record will never refer to the part. An
		// operator's answer can be replaced by another Settle.
		if itm.Status == lambdaidem.Completed && !isSettled(itm.Status, itm.Token, itm.Operations) {
			return true
		}
		// The attempt that wrote the part may still complete the record.
		if itm.heldBy(part.token) {
			return false
		}
	}
	return part.writtenAt.Before(now.Add(-orphanAge))
}

// isReferredToBy reports whether the record refers to the part: as a part of its answer,
// or in its list of parts that a purge has yet to delete.
func (part *storedPart) isReferredToBy(itm *item) bool {
	if itm == nil {
		return false
	}
	for _, list := range []*parts{itm.Parts, itm.Erasing} {
		if list == nil {
			continue
		}
		for n := range list.Count {
			if partID(itm.ID, list.Checksum, n+1) == part.id {
				return true
			}
		}
	}
	return false
}

// deleteOrphans deletes the orphans among the candidates; see isOrphan. In a dry run, deleteOrphans
// only counts them. A part that no record refers to, but that an attempt or an operator may still
// use, stays and counts in PurgeProgress.KeptParts. deleteOrphans ignores a part that
// PurgeOptions.Match does not select.
func (p *purge) deleteOrphans(ctx context.Context, candidates []storedPart, now time.Time) error {
	type lookup struct {
		current *item // the record as it is now; nil if there is none
		foreign bool  // the item under the record's id is not a record of this package
	}
	records := map[string]lookup{}
	for i := range candidates {
		part := &candidates[i]
		if p.opts.Match != nil && !p.opts.Match(lambdaidem.Record{ID: part.record, Scope: part.scope, Token: part.token, StartedAt: part.writtenAt}) {
			continue
		}
		owner, known := records[part.record]
		if !known {
			var err error
			owner.current, err = p.find(ctx, part.record)
			if owner.foreign = isForeign(err); err != nil && !owner.foreign {
				return err
			}
			records[part.record] = owner
		}
		switch {
		case part.isReferredToBy(owner.current): // deleted when its record is purged
		case owner.foreign, !part.isOrphan(owner.current, now, p.o.opts.MaxSkew):
			p.count(func(sum *PurgeProgress) { sum.KeptParts++ })
		case p.opts.DryRun:
			p.count(func(sum *PurgeProgress) { sum.Orphans++ })
		default:
			if err := p.deleteOrphan(ctx, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// find reads a record by a consistent GetItem. It returns nil if there is none, and a
// foreignItemError if the item is not a record of this package.
func (p *purge) find(ctx context.Context, id string) (*item, error) {
	var out *dynamodb.GetItemOutput
	_, err := wire.Watch(ctx, func(ctx context.Context) (err error) {
		out, err = p.o.s.wire.SDK().GetItem(ctx, &dynamodb.GetItemInput{
			TableName: aws.String(p.o.s.table), Key: p.o.s.key(id), ConsistentRead: aws.Bool(true),
			ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		})
		return err
	})
	if err != nil {
		return nil, failed(opPurge, wire.NotApplied, fmt.Errorf("read the record of a part: %w", err))
	}
	if err := p.spend(ctx, unitsOf(out.ConsumedCapacity)); err != nil || len(out.Item) == 0 {
		return nil, err
	}
	return p.o.s.layout.parse(out.Item)
}

// deleteOrphan deletes one part, and counts it in PurgeProgress.Parts and PurgeProgress.Orphans. If
// the part no longer exists, deleteOrphan counts nothing.
func (p *purge) deleteOrphan(ctx context.Context, part *storedPart) error {
	const exists = "attribute_exists(#part)"
	out, fate, err := p.o.s.deleteItem(ctx, &dynamodb.DeleteItemInput{
		Key: p.o.s.key(part.id), ConditionExpression: aws.String(exists), ExpressionAttributeNames: map[string]string{"#part": attrPart},
	})
	if gone := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &gone) {
		return p.spend(ctx, 1)
	}
	if err != nil {
		return failed(opPurge, fate, fmt.Errorf("delete a part that no record names: %w", err))
	}
	p.count(func(sum *PurgeProgress) { sum.Parts, sum.Orphans = sum.Parts+1, sum.Orphans+1 })
	return p.spend(ctx, unitsOf(out.ConsumedCapacity))
}

// deleteItem sends a DeleteItem for an item of the store's table.
func (s *Store) deleteItem(ctx context.Context, in *dynamodb.DeleteItemInput) (out *dynamodb.DeleteItemOutput, fate wire.Fate, err error) {
	in.TableName, in.ReturnConsumedCapacity = aws.String(s.table), types.ReturnConsumedCapacityTotal
	fate, err = wire.Watch(ctx, func(ctx context.Context) (err error) {
		out, err = s.wire.SDK().DeleteItem(ctx, in)
		return err
	})
	return out, fate, err
}
