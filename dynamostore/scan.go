package dynamostore

import (
	"context"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// ScanOptions are the settings of a walk over the whole table. The zero value of
// every field is its default.
type ScanOptions struct {
	// Pace is called after each request with the capacity units that it consumed; an
	// error ends the walk. A rate limiter waits in it. Default: nil, no limit.
	Pace func(ctx context.Context, units float64) error
	// PageSize is how many items one request looks at, 1 to 10,000, as far as they
	// have 1 MB. Default 250.
	PageSize int32
}

func (o *ScanOptions) resolve() {
	orDefault(&o.PageSize, 250)
	if o.PageSize < 1 || o.PageSize > 10_000 {
		panic("dynamostore: ScanOptions.PageSize must be 1 to 10000")
	}
	if o.Pace == nil {
		o.Pace = func(context.Context, float64) error { return nil }
	}
}

const opScan = "scan"

// page is what one Scan request found.
type page struct {
	items   []*item      // records
	parts   []storedPart // parts of answers
	foreign int          // items that this package did not write
	looked  int          // all items that the request examined
	clock   Inspected    // only its clock is set: the database's time
	next    string       // where the next page begins; "" after the last page
	units   float64      // capacity units consumed
}

// scanLeases reads a page of the records that are in progress. It reads eventually
// consistently, for half the price.
func (s *Store) scanLeases(ctx context.Context, after string, limit int32) (page, error) {
	return s.scan(ctx, after, &dynamodb.ScanInput{
		Limit:                     aws.Int32(limit),
		FilterExpression:          aws.String("attribute_not_exists(#part) AND #status = :in_progress"),
		ExpressionAttributeNames:  map[string]string{"#part": attrPart, "#status": s.layout.nameOf(attrStatus)},
		ExpressionAttributeValues: attributes{":in_progress": str(lambdaidem.InProgress)},
	})
}

// scanAll reads a page of all records and parts. It reads consistently, so that a
// purge misses nothing that was written before it began.
func (s *Store) scanAll(ctx context.Context, after string, limit int32) (page, error) {
	return s.scan(ctx, after, &dynamodb.ScanInput{Limit: aws.Int32(limit), ConsistentRead: aws.Bool(true)})
}

// scan sends the request for the page that begins after a key.
func (s *Store) scan(ctx context.Context, after string, in *dynamodb.ScanInput) (page, error) {
	in.TableName, in.ReturnConsumedCapacity = aws.String(s.table), types.ReturnConsumedCapacityTotal
	if after != "" {
		in.ExclusiveStartKey = s.key(after)
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
	p := page{looked: int(out.ScannedCount), clock: inspectedAt(now), units: unitsOf(out.ConsumedCapacity)}
	if id, ok := out.LastEvaluatedKey[s.layout.id()].(*types.AttributeValueMemberS); ok {
		p.next = id.Value
	}
	for _, attrs := range out.Items {
		if part, ok := s.layout.parsePart(attrs); ok {
			p.parts = append(p.parts, part)
			continue
		}
		it, err := s.layout.parse(attrs)
		if err != nil {
			p.foreign++
			continue
		}
		p.items = append(p.items, it)
	}
	return p, nil
}

// unitsOf returns what a request consumed, by its own answer.
func unitsOf(c *types.ConsumedCapacity) float64 {
	if c == nil {
		return 0
	}
	return aws.ToFloat64(c.CapacityUnits)
}

// ScanLeases walks over the whole table and yields what is in progress, live or
// dead ([lambdaidem.Record.LeaseLiveAt]), with the time by the database's clock. It
// reads, and pays for, every item (half a read unit for each 4 KB), which on a large
// table is slow and dear: it is for tables without an index of leases. What was
// written in the last moment may be missing.
//
// The error, a StoreError or one of Pace, ends the walk.
func (s *Store) ScanLeases(ctx context.Context, optFns ...func(*ScanOptions)) iter.Seq2[Inspected, error] {
	var o ScanOptions
	for _, fn := range optFns {
		fn(&o)
	}
	o.resolve()
	return func(yield func(Inspected, error) bool) {
		for after := ""; ; {
			p, err := s.scanLeases(ctx, after, o.PageSize)
			if err == nil {
				err = o.Pace(ctx, p.units)
			}
			if err != nil {
				yield(Inspected{}, err)
				return
			}
			for _, it := range p.items {
				if !yield(Inspected{Record: it.record(), Operations: it.Operations, Now: p.clock.Now, read: p.clock.read}, nil) {
					return
				}
			}
			if after = p.next; after == "" {
				return
			}
		}
	}
}
