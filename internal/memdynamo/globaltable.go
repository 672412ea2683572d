package memdynamo

// Consistency is the consistency mode of a global table ("How DynamoDB global tables work",
// "Consistency modes"), as in DescribeTable.
type Consistency string

// The consistency modes.
const (
	Eventual Consistency = "EVENTUAL" // MREC: each Region has a copy, and the last writer of an item wins
	Strong   Consistency = "STRONG"   // MRSC: every conditional write and consistent read sees the latest version
)

type replica struct{ RegionName string }

// Global makes the table a replica of a global table in these Regions, which DescribeTable then
// reports. A [Strong] table refuses transactions and TTL from then on. AWS documents that it
// refuses transactions with an error, but not which one; here it is a [Validation]. Global panics
// if there is no such table.
//
// Whether Regions share a DB, and when a write reaches the DB of another Region ([DB.Replicate]),
// is decided by the simulator.
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

// Replicate stores an item that another Region has written, or deletes the item with this key if
// item is nil. It checks no condition and is not a [Write], so functions registered with OnWrite
// are not called.
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
