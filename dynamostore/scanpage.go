package dynamostore

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
)

// opScan is the value of StoreError.Op in errors from a scan.
const opScan = "scan"

// page is the result of one Scan request.
type page struct {
	items        []*item       // records
	parts        []storedPart  // parts of answers
	foreign      []foreignItem // items that are neither records nor parts of answers, or are damaged
	looked       int           // all items that the request examined
	clock        databaseClock
	nextPosition string  // where the next page begins, for scan; "" after the last page
	units        float64 // capacity units consumed
}

// foreignItem is an item that can't be read as a record.
type foreignItem struct {
	id  string // "?" if the item's key can't be read either
	err error
}

// scanAll reads one page of a scan over all records and all parts of large answers. The read is
// consistent, so that a purge misses nothing that was written before it began.
func (s *Store) scanAll(ctx context.Context, position string, limit int32) (page, error) {
	return s.scan(ctx, position, &dynamodb.ScanInput{Limit: aws.Int32(limit), ConsistentRead: aws.Bool(true)})
}

// scan sends a Scan for one page of the table. position is page.nextPosition of the previous page,
// or empty for the first page.
func (s *Store) scan(ctx context.Context, position string, in *dynamodb.ScanInput) (page, error) {
	in.TableName, in.ReturnConsumedCapacity = aws.String(s.table), types.ReturnConsumedCapacityTotal
	if position != "" {
		start, err := s.layout.parseScanPosition(position)
		if err != nil {
			return page{}, failed(opScan, wire.NotApplied, err)
		}
		in.ExclusiveStartKey = start
	}
	var out *dynamodb.ScanOutput
	_, err := wire.Watch(ctx, func(ctx context.Context) (err error) {
		out, err = s.wire.SDK().Scan(ctx, in)
		return err
	})
	if err != nil {
		return page{}, failed(opScan, wire.NotApplied, err)
	}
	now, ok := awsmiddleware.GetServerTime(out.ResultMetadata)
	if !ok {
		return page{}, failed(opScan, wire.NotApplied, errNoDate)
	}
	p := page{looked: int(out.ScannedCount), clock: clockOf(now), units: unitsOf(out.ConsumedCapacity)}
	p.nextPosition = s.layout.scanPosition(out.LastEvaluatedKey)
	for _, attrs := range out.Items {
		if part, ok := s.layout.parsePart(attrs); ok {
			p.parts = append(p.parts, part)
			continue
		}
		itm, err := s.layout.parse(attrs)
		if err == nil {
			err = hidesExpiry(itm, attrs)
		}
		if err != nil {
			unread := foreignItem{id: "?", err: err}
			if id, ok := attrs[s.layout.id()].(*types.AttributeValueMemberS); ok {
				unread.id = id.Value
			}
			p.foreign = append(p.foreign, unread)
			continue
		}
		p.items = append(p.items, itm)
	}
	return p, nil
}

// unitsOf returns the capacity units in a reply, or 0 if the reply has none.
func unitsOf(c *types.ConsumedCapacity) float64 {
	if c == nil {
		return 0
	}
	return aws.ToFloat64(c.CapacityUnits)
}
