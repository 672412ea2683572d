package dynamostore

import (
	"context"
)

// CheckTable checks whether the store can use its table. It returns nil or [TableProblems]. Some of
// the problems may be warnings only. enlistedTables are the names of other tables to which handlers
// enlist writes. CheckTable checks:
//
//   - whether the table exists and is ACTIVE
//   - whether the table's key and TTL suit the store
//   - whether the type of an index's key would make DynamoDB refuse to write records
//   - whether the table is a global table, so that several Regions can write to it. This is only a
//     warning.
//   - whether the credentials allow GetItem, PutItem and UpdateItem
//   - whether the index of Options.LeaseIndex suits the store, and whether the credentials allow
//     Query on it. A missing permission for Query is a warning, because only [Store.DeadLeases]
//     needs it.
//   - whether enlistedTables and the store's own table support transactions, and which actions on
//     enlistedTables the credentials allow
//
// CheckTable is meant for the smoke test of a deployment. It takes five round trips, two more with
// Options.LeaseIndex, one more if there are enlisted tables, and five more for each of them. For
// health probes, use a [HealthCheck].
//
// If a call gets no reply, CheckTable adds the problem [TimedOut] or [Unreachable], and skips the
// remaining checks.
//
// CheckTable changes no item: it tests write permissions by writes whose condition never holds. It
// needs the permissions that the store needs, and dynamodb:DescribeTable and
// dynamodb:DescribeTimeToLive.
func (s *Store) CheckTable(ctx context.Context, enlistedTables ...string) error {
	problems := checkShape(ctx, s.wire.SDK(), s.table, &s.opts, len(enlistedTables) > 0)
	if !problems.has(NoTable) && !problems.noReply() {
		problems = append(problems, s.checkPermissions(ctx)...)
	}
	if len(enlistedTables) > 0 && !problems.has(NoTable) && !problems.has(NoTransactions) && !problems.has(NoPermission) && !problems.noReply() {
		problems = append(problems, s.checkRecordsTransact(ctx)...)
	}
	for _, table := range enlistedTables {
		if !problems.noReply() {
			problems = append(problems, s.checkEnlisted(ctx, table)...)
		}
	}
	if !problems.has(NoTable) && !problems.noReply() {
		problems = append(problems, s.checkDeadLeases(ctx)...)
	}
	return problems.err()
}
