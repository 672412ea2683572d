package dynamostore

import (
	"context"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// ScanLeases scans the whole table and yields each record that is in progress. To find out whether
// its lease is live or dead, pass [Inspected.At], the current time by DynamoDB's clock, to
// [lambdaidem.Record.LeaseLiveAt]. A record that was written shortly before may be missing, because
// the reads are eventually consistent.
//
// ScanLeases reads every item, at half a read unit for each 4 KB. If the table has the index
// Options.LeaseIndex, use [Store.DeadLeases] instead.
//
// If an item can't be read as a record, ScanLeases yields its id with a *[lambdaidem.StoreError]
// whose Reason is [lambdaidem.ReasonForeign], and continues. The item may belong to another tool,
// or be a record of a Lambda function whose Options rename an attribute. Any other error ends the
// scan, and is yielded without an id: a *[lambdaidem.StoreError] or an error from ScanOptions.Pace.
func (s *Store) ScanLeases(ctx context.Context, optFns ...func(*ScanOptions)) iter.Seq2[Inspected, error] {
	var o ScanOptions
	for _, fn := range optFns {
		fn(&o)
	}
	o.resolve()
	return func(yield func(Inspected, error) bool) {
		for position := ""; ; {
			p, err := s.scanLeases(ctx, position, o.PageSize)
			if err == nil {
				err = o.Pace(ctx, p.units)
			}
			if err != nil {
				yield(Inspected{}, err)
				return
			}
			for _, unread := range p.foreign {
				found := p.clock.inspected(lambdaidem.Record{ID: unread.id}, nil)
				if !yield(found, failed(opScan, wire.NotApplied, unread.err)) {
					return
				}
			}
			for _, itm := range p.items {
				if !yield(p.clock.inspected(itm.record(), itm.Operations), nil) {
					return
				}
			}
			if position = p.nextPosition; position == "" {
				return
			}
		}
	}
}

// scanLeases reads a page of the table with an eventually consistent read. It leaves out the parts
// of answers, and completed and released records. The page includes items without a known state:
// such an item may be a record in progress, written by a function that gives the attribute "status"
// another name.
func (s *Store) scanLeases(ctx context.Context, position string, limit int32) (page, error) {
	return s.scan(ctx, position, &dynamodb.ScanInput{
		Limit:                     aws.Int32(limit),
		FilterExpression:          aws.String("attribute_not_exists(#part) AND NOT #status IN (:completed, :released)"),
		ExpressionAttributeNames:  map[string]string{"#part": attrPart, "#status": s.layout.nameOf(attrStatus)},
		ExpressionAttributeValues: attributes{":completed": str(lambdaidem.Completed), ":released": str(lambdaidem.Released)},
	})
}
