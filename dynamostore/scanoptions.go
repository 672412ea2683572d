package dynamostore

import "context"

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
