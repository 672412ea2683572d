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

// storedPart is one item of an answer that is stored in several, without its bytes.
type storedPart struct {
	id      string // the part's own key
	record  string
	token   string // fencing token of the attempt that wrote it
	scope   string // the record's
	written time.Time
}

// parsePart reads an item that is a part of an answer.
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
	return storedPart{id: string(id), record: string(record), token: string(token), scope: string(scope), written: fromMillis(written)}, true
}

// orphanAge is how old a part must be before a purge deletes it although its record
// leaves open whether the attempt may still complete. An attempt sends its completion
// right after its parts: a Lambda invocation lasts at most 15 minutes, and a request
// can arrive until its signature expires, another 15 minutes at most. The rest is for
// clocks that differ.
const orphanAge = time.Hour

// isOrphan reports whether a part will never be read: its record does not name it, and
// nobody can complete the record with it any more. An attempt can't once the record is
// completed, but an operator who settles the record again can. stands is the record; nil
// if there is none.
//
// A part beside a completed record is an orphan only if the record lasts maxSkew and a
// second longer. By a clock that is ahead, the record may be expired already, and an
// optimistic attempt may have written the part to replace the record. The second is there
// because now, DynamoDB's time, is rounded down to a whole second.
func (part *storedPart) isOrphan(stands *item, now time.Time, maxSkew time.Duration) bool {
	if stands != nil && !stands.record().GoneAt(now.Add(maxSkew+time.Second)) {
		if stands.Status == lambdaidem.Completed && !isSettled(stands.Status, stands.Token, stands.Operations) {
			return true
		}
		if stands.heldBy(part.token) {
			return false
		}
	}
	return part.written.Before(now.Add(-orphanAge))
}

// namedBy reports whether a record's answer, or one that is being erased, has the part.
func (part *storedPart) namedBy(it *item) bool {
	if it == nil {
		return false
	}
	for _, of := range []*parts{it.Parts, it.Erasing} {
		if of == nil {
			continue
		}
		for n := range of.Count {
			if partID(it.ID, of.Checksum, n+1) == part.id {
				return true
			}
		}
	}
	return false
}

// orphans deletes the parts that Match chooses and that no attempt can complete with.
func (p *purge) orphans(ctx context.Context, found []storedPart, now time.Time) error {
	type lookup struct {
		stands  *item // nil: there is none
		foreign bool  // the item under the record's id is no record
	}
	records := map[string]lookup{}
	for i := range found {
		part := &found[i]
		if p.opts.Match != nil && !p.opts.Match(lambdaidem.Record{ID: part.record, Scope: part.scope, Token: part.token, StartedAt: part.written}) {
			continue
		}
		of, known := records[part.record]
		if !known {
			var err error
			of.stands, err = p.find(ctx, part.record)
			if of.foreign = isForeign(err); err != nil && !of.foreign {
				return err
			}
			records[part.record] = of
		}
		switch {
		case part.namedBy(of.stands): // purged with its record
		case of.foreign, !part.isOrphan(of.stands, now, p.o.opts.MaxSkew):
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

// find reads a record consistently. It returns nil if there is none, and a
// foreignItemError if the item is no record.
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

// deleteOrphan deletes one part, and counts it if it was still there.
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

// deleteItem deletes an item of the store's table.
func (s *Store) deleteItem(ctx context.Context, in *dynamodb.DeleteItemInput) (out *dynamodb.DeleteItemOutput, fate wire.Fate, err error) {
	in.TableName, in.ReturnConsumedCapacity = aws.String(s.table), types.ReturnConsumedCapacityTotal
	fate, err = wire.Watch(ctx, func(ctx context.Context) (err error) {
		out, err = s.wire.SDK().DeleteItem(ctx, in)
		return err
	})
	return out, fate, err
}
