// Package simulator runs the real guard and the real dynamostore, including the SDK's retries, in
// a world where everything that can go wrong does: requests and replies are lost, delayed or
// delivered twice; DynamoDB throttles, fails after it has written, and reports conflicts; clocks
// differ; processes are killed at any point, or stand still past their lease and then continue;
// TTL deletes whenever it likes.
//
// A world lives in one testing/synctest bubble. Its time is virtual, so an hour costs nothing. One
// seed decides everything that is random. The requests reach the simulated DynamoDB of package
// memdynamo one at a time, in an order that the seed decides. So the same seed gives the same run,
// to the nanosecond.
//
// # A run by seed
//
// [Run] (run.go) makes a world (world.go, agenda.go) and draws a plan of what goes wrong
// (plan.go). Clients (client.go) send requests. Each request starts a process (actor.go) with a
// guard around the simulated handler (handler.go). endings.go lists the ways in which the handler
// can end, and what must then happen to the record. The guard's SDK sends its requests over the
// network (network.go), where each of them may meet a fault (faults.go). When the clients are
// done, the faults end, and a probe sends one more request for every key.
//
// Some plans add more:
//
//   - In half of the plans the handler enlists a transfer (effects.go, enlist.go, accounts.go): with
//     a lock, optimistically, unguarded, or after failing open.
//   - The handler calls other services in steps (steps.go), or makes guarded calls (inner.go).
//   - Answers are compressed, or stored in parts (parts.go).
//   - Operators release, settle and purge records (operators.go, operators_journal.go).
//   - Deployments change how fingerprints are made (deployments.go).
//   - Nobody can reach the table for a while (outages.go). In these plans a process serves several
//     invocations with one guard (process.go).
//   - The guard looks up the records of repeated requests (lookups.go).
//
// # Every order of a small case
//
// [Play] (small.go) runs a few attempts in one order of their requests. A tree of decisions
// (tree.go) replaces chance, and leads through all orders.
//
// # Several Regions
//
// [RunRegions] (regions.go, regions_run.go) runs a world whose table is a global table. With
// eventual consistency each Region decides by its own copy. A Region's writes arrive in the other
// Region later, one by one and out of order, and the last writer wins. With strong consistency all
// Regions see one table, which has neither TTL nor transactions, and a write may be refused because
// of a write in another Region. docs/regions.md says what holds and what breaks: when all requests
// for a key go to one Region, when they go to any, and when a Region fails and its keys move
// (failover.go). [TwoRegions] is the smallest case that breaks: one key is used in two Regions, and
// nothing else goes wrong.
//
// # What is recorded
//
// The journal (journal.go) records everything that happens: which attempt ran when, which effect
// it had, and what every client was told. journal_record.go has what each write did to a record.
// journal_transaction.go has what became of each TransactWriteItems, and paths.go names the paths
// that the transactions of a simulation must have taken. timeline.go has everything in the order of
// time, and prints it. diagram.go and diagram_record.go draw it for a browser.
//
// # How it is checked
//
// checks.go names every check, with the rule that it tests. checks_write.go checks each write,
// checks_answer.go what clients were told, checks_run.go the runs of the handler, and
// checks_effect.go the enlisted writes. checks_steps.go, checks_inner.go, checks_downstream.go,
// checks_parts.go, checks_leaseshard.go, checks_outages.go and checks_operators.go check what their
// names say. checks_linearizable.go passes what clients saw to porcupine, with a model of the
// contract. A run that breaks a rule prints its timeline. Mutations (mutation.go) are deliberate
// mistakes, which the checks must find.
package simulator
