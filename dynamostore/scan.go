package dynamostore

import (
	"context"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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

// page is what one request of a walk found.
type page struct {
	items   []*item   // records
	foreign int       // items that are no records of ours (D4)
	looked  int       // items that it looked at, parts of answers too
	clock   Inspected // the database's, for its Now
	next    string    // the key after which the next page begins; "": it is the last one
	units   float64
}

// scan reads a page: of records in one state, if only is set. All records are read
// consistently, so that a purge leaves none; those in one state at half the price.
func (s *Store) scan(ctx context.Context, after string, only lambdaidem.State, limit int32) (page, error) {
	ctx, v := witnessed(ctx, opScan)
	in := &dynamodb.ScanInput{
		TableName: aws.String(s.table), ConsistentRead: aws.Bool(only == lambdaidem.Absent), Limit: aws.Int32(limit),
		ReturnConsumedCapacity:   types.ReturnConsumedCapacityTotal,
		FilterExpression:         aws.String("attribute_not_exists(#part)"),
		ExpressionAttributeNames: map[string]string{"#part": attrPart},
	}
	if after != "" {
		in.ExclusiveStartKey = s.key(after)
	}
	if only != lambdaidem.Absent {
		*in.FilterExpression += " AND #status = :only"
		in.ExpressionAttributeNames["#status"] = s.layout.nameOf(attrStatus)
		in.ExpressionAttributeValues = attributes{":only": str(only)}
	}
	out, err := s.client.Scan(ctx, in)
	v.ambiguous = false // a read writes nothing, however it ends
	if err != nil {
		return page{}, v.storeError(err)
	}
	now, ok := awsmiddleware.GetServerTime(out.ResultMetadata)
	if !ok {
		return page{}, v.storeError(errNoDate)
	}
	p := page{looked: int(out.ScannedCount), clock: inspectedAt(now), units: unitsOf(out.ConsumedCapacity)}
	if id, ok := out.LastEvaluatedKey[s.layout.id()].(*types.AttributeValueMemberS); ok {
		p.next = id.Value
	}
	for _, attrs := range out.Items {
		it, err := s.layout.parse(attrs)
		if err != nil {
			p.foreign++
			continue
		}
		p.items = append(p.items, it)
	}
	return p, nil
}

// unitsOf is what a request consumed, by its own answer.
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
			p, err := s.scan(ctx, after, lambdaidem.InProgress, o.PageSize)
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
