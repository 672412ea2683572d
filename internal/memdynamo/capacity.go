package memdynamo

// capacity is what an operation consumed, as DynamoDB reports it.
type capacity struct {
	TableName     string
	CapacityUnits float64
	splitUnits
	Table *tableCapacity `json:",omitempty"`
}

type tableCapacity struct {
	CapacityUnits float64
	splitUnits
}

// splitUnits is the units by kind, which transactions alone report.
type splitUnits struct {
	ReadCapacityUnits  float64 `json:",omitempty"`
	WriteCapacityUnits float64 `json:",omitempty"`
}

// consumed returns the report that the request asked for; nil where it asked for
// none.
func consumed(t *table, choice string, units float64) *capacity {
	switch choice {
	case "TOTAL":
		return &capacity{TableName: t.name, CapacityUnits: units}
	case "INDEXES":
		return &capacity{TableName: t.name, CapacityUnits: units, Table: &tableCapacity{CapacityUnits: units}}
	}
	return nil
}

// writeUnits returns what a write consumes: one unit for each 1 KB, or part of it,
// of the larger of the item before and after; at least one ("DynamoDB read and
// write operations").
func writeUnits(before, after Item) float64 {
	return units(max(before.Size(), after.Size()), 1<<10)
}

// readUnits returns what a read consumes: one unit for each 4 KB, or part of it, or
// half of that where it need not be consistent; an absent item counts as one.
func readUnits(size int, consistent bool) float64 {
	u := units(size, 4<<10)
	if !consistent {
		u /= 2
	}
	return u
}

func units(size, per int) float64 { return float64(max(1, (size+per-1)/per)) }
