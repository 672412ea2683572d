package memdynamo

import "time"

// table is a table with its items.
type table struct {
	name    string
	keys    []keyAttribute // partition key, then the sort key if it has one
	items   map[string]Item
	ttl     string // the TTL attribute; empty while TTL is off
	billing string
	created time.Time

	consistency Consistency // mode of a global table; empty if the table is not global
	replicas    []replica
}
