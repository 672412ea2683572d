package dynamostore

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// ScanOptions are the options of a scan of the whole table. The zero value of each field
// selects its default.
type ScanOptions struct {
	// Pace is called after each request with the capacity units that the request
	// consumed. It can wait, to limit the rate. An error ends the scan. Default: nil,
	// which sets no limit.
	Pace func(ctx context.Context, units float64) error
	// PageSize is the maximum number of items that one request examines, from 1 to
	// 10,000. A request also stops at 1 MB. Default: 250.
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

// opScan is the value of StoreError.Op in errors from a scan.
const opScan = "scan"

// page is the result of one Scan request.
type page struct {
	items   []*item       // records
	parts   []storedPart  // parts of answers
	foreign []foreignItem // items that are neither records nor parts of answers, or are damaged
	looked  int           // all items that the request examined
	clock   Inspected     // the database's time; clock.Record is not set
	next    string        // where the next page begins, for scan; "" after the last page
	units   float64       // capacity units consumed
}

// foreignItem is an item that can't be read as a record.
type foreignItem struct {
	id  string // "?" if the item's key can't be read either
	why error
}

// scanLeases reads a page of the table without the parts of answers and without the records
// that are completed or released. It keeps items without a known state: they may be records in
// progress whose functions rename the attribute of the state. The read is eventually
// consistent, which costs half as much as a consistent one.
func (s *Store) scanLeases(ctx context.Context, after string, limit int32) (page, error) {
	return s.scan(ctx, after, &dynamodb.ScanInput{
		Limit:                     aws.Int32(limit),
		FilterExpression:          aws.String("attribute_not_exists(#part) AND NOT #status IN (:completed, :released)"),
		ExpressionAttributeNames:  map[string]string{"#part": attrPart, "#status": s.layout.nameOf(attrStatus)},
		ExpressionAttributeValues: attributes{":completed": str(lambdaidem.Completed), ":released": str(lambdaidem.Released)},
	})
}

// scanAll reads a page of all records and parts. The read is consistent, so that a purge
// misses nothing that was written before it began.
func (s *Store) scanAll(ctx context.Context, after string, limit int32) (page, error) {
	return s.scan(ctx, after, &dynamodb.ScanInput{Limit: aws.Int32(limit), ConsistentRead: aws.Bool(true)})
}

// scan sends a Scan for one page of the table. The parameter after is the field next of the
// previous page, or empty for the first page.
func (s *Store) scan(ctx context.Context, after string, in *dynamodb.ScanInput) (page, error) {
	in.TableName, in.ReturnConsumedCapacity = aws.String(s.table), types.ReturnConsumedCapacityTotal
	if after != "" {
		start, err := s.layout.parseScanPosition(after)
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
	p := page{looked: int(out.ScannedCount), clock: inspectedAt(now), units: unitsOf(out.ConsumedCapacity)}
	p.next = s.layout.scanPosition(out.LastEvaluatedKey)
	for _, attrs := range out.Items {
		if part, ok := s.layout.parsePart(attrs); ok {
			p.parts = append(p.parts, part)
			continue
		}
		it, err := s.layout.parse(attrs)
		if err == nil {
			err = hidesExpiry(it, attrs)
		}
		if err != nil {
			unread := foreignItem{id: "?", why: err}
			if id, ok := attrs[s.layout.id()].(*types.AttributeValueMemberS); ok {
				unread.id = id.Value
			}
			p.foreign = append(p.foreign, unread)
			continue
		}
		p.items = append(p.items, it)
	}
	return p, nil
}

// scanPosition returns the key of a page's last item as a string for page.next. The string is
// the partition key or, if the table has a sort key, a JSON array of both keys. This package's
// items have the same value in both keys, but the last item of a page may belong to another
// tool. If last is empty, scanPosition returns "".
func (l *layout) scanPosition(last attributes) string {
	if len(last) == 0 {
		return ""
	}
	var id, sortKey text
	_ = takeValue(&id, last[l.id()]) // CheckTable reports a key that is not a string
	if l.sortKey() == "" {
		return string(id)
	}
	_ = takeValue(&sortKey, last[l.sortKey()])
	both, _ := json.Marshal([2]string{string(id), string(sortKey)}) //nolint:errchkjson // strings can always be encoded
	return string(both)
}

// parseScanPosition converts a position that scanPosition returned back into the key of an
// item. It returns an error if the table has a sort key and position is not a JSON array.
func (l *layout) parseScanPosition(position string) (attributes, error) {
	if l.sortKey() == "" {
		return l.key(position), nil
	}
	var both [2]string
	if err := json.Unmarshal([]byte(position), &both); err != nil {
		return nil, fmt.Errorf("%q is no position in a table with a sort key, which is a JSON array of two strings: %w", position, err)
	}
	return attributes{l.id(): str(both[0]), l.sortKey(): str(both[1])}, nil
}

// unitsOf returns the capacity units in a reply, or 0 if the reply has none.
func unitsOf(c *types.ConsumedCapacity) float64 {
	if c == nil {
		return 0
	}
	return aws.ToFloat64(c.CapacityUnits)
}

// ScanLeases scans the whole table and yields each record that is in progress, with the
// database's time. The lease of the record may be live or dead; see
// [lambdaidem.Record.LeaseLiveAt]. A record that was written shortly before may be missing,
// because the reads are eventually consistent.
//
// ScanLeases reads every item, at half a read unit for each 4 KB. On a large table that is
// slow and expensive. Use [Store.DeadLeases] if the table has the index Options.LeaseIndex.
//
// If an item can't be read as a record, ScanLeases yields its id with a
// *[lambdaidem.StoreError] whose Reason is [lambdaidem.ReasonForeign], and continues. The
// item may belong to another tool. It may also be a record of functions whose Options
// rename an attribute, while the Options of this store don't. Such a record may have a dead
// lease.
//
// Any other error ends the scan, and ScanLeases yields it without an id. The error is a
// *[lambdaidem.StoreError] or an error of ScanOptions.Pace.
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
			for _, unread := range p.foreign {
				found := p.clock
				found.Record.ID = unread.id
				if !yield(found, failed(opScan, wire.NotApplied, unread.why)) {
					return
				}
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
