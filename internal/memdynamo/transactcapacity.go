package memdynamo

// tableUnits has the capacity units that a transaction consumed, by table, in the order of the
// request.
type tableUnits []tableUnit

type tableUnit struct {
	table *table
	units float64
}

// consumedBy returns the write units that the transaction consumes, and the read units that its
// repetition would consume. Each item counts twice what a single request would consume. A
// condition check counts like a write. In a repetition, each item counts like a consistent read
// ("Capacity management for transactions").
func consumedBy(parts []*part) (written, read tableUnits) {
	for _, p := range parts {
		size := max(p.before.Size(), p.after.Size())
		written.add(p.table, 2*writeUnits(p.before, p.after))
		read.add(p.table, 2*readUnits(size, true))
	}
	return written, read
}

func (u *tableUnits) add(t *table, units float64) {
	for i := range *u {
		if (*u)[i].table == t {
			(*u)[i].units += units
			return
		}
	}
	*u = append(*u, tableUnit{t, units})
}

// report returns the units in the form that the request asked for. Unlike for a single write, it
// also says whether they are read or write units.
func (u *tableUnits) report(choice string, kind func(units float64) splitUnits) []capacity {
	var out []capacity
	for _, t := range *u {
		c := consumed(t.table, choice, t.units)
		if c == nil {
			return nil
		}
		c.splitUnits = kind(t.units)
		if c.Table != nil {
			c.Table.splitUnits = c.splitUnits
		}
		out = append(out, *c)
	}
	return out
}

func asWritten(units float64) splitUnits { return splitUnits{WriteCapacityUnits: units} }
func asRead(units float64) splitUnits    { return splitUnits{ReadCapacityUnits: units} }
