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

// splitUnits has the units by kind. Only transactions report them.
type splitUnits struct {
	ReadCapacityUnits  float64 `json:",omitempty"`
	WriteCapacityUnits float64 `json:",omitempty"`
}

// consumed returns the report that the request asked for with ReturnConsumedCapacity, or nil if
// it asked for none.
func consumed(t *table, choice string, units float64) *capacity {
	switch choice {
	case "TOTAL":
		return &capacity{TableName: t.name, CapacityUnits: units}
	case "INDEXES":
		return &capacity{TableName: t.name, CapacityUnits: units, Table: &tableCapacity{CapacityUnits: units}}
	}
	return nil
}

// writeUnits returns the write capacity units of a write: one unit for each 1 KB, rounded up, of
// the larger of the item before and the item after, and at least one ("DynamoDB read and write
// operations").
func writeUnits(before, after Item) float64 {
	return units(max(before.Size(), after.Size()), 1<<10)
}

// readUnits returns the read capacity units of a consistent read: one unit for each 4 KB, rounded
// up, and at least one. An eventually consistent read consumes half of that.
func readUnits(size int, consistent bool) float64 {
	u := units(size, 4<<10)
	if !consistent {
		u /= 2
	}
	return u
}

func units(size, per int) float64 { return float64(max(1, (size+per-1)/per)) }
