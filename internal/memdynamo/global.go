package memdynamo

// Consistency is how the Regions of a global table agree ("How DynamoDB global
// tables work", "Consistency modes"), as DescribeTable spells it.
type Consistency string

// The modes.
const (
	Eventual Consistency = "EVENTUAL" // MREC: each Region has a copy, and the last writer of an item wins
	Strong   Consistency = "STRONG"   // MRSC: every conditional write and consistent read sees the latest
)

type replica struct{ RegionName string }

// Global makes the table a replica of a global table of these Regions; it panics
// where there is no such table. DescribeTable tells of it. A [Strong] one refuses
// transactions and TTL from then on. AWS says that it refuses transactions with an
// error and not with which: here it is a [Validation].
//
// Whether Regions share a DB, and when a write reaches another Region's
// ([DB.Replicate]), is the simulator's business.
func (db *DB) Global(table string, c Consistency, regions ...string) {
	db.mu.Lock()
	defer db.mu.Unlock()
	t := db.tables[table]
	if t == nil {
		panic("memdynamo: no table " + table)
	}
	t.consistency, t.replicas = c, nil
	for _, name := range regions {
		t.replicas = append(t.replicas, replica{name})
	}
}

// Replicate puts an item as another Region wrote it, or deletes it where item is
// nil. It asks no condition, and is no [Write]: OnWrite doesn't see it.
func (db *DB) Replicate(table string, key, item Item) {
	db.mu.Lock()
	defer db.mu.Unlock()
	t := db.tables[table]
	k := t.encode(t.keyOf(key))
	if item == nil {
		delete(t.items, k)
		return
	}
	t.items[k] = item
}
