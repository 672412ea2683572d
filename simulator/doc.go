// Package simulator runs the real guard and the real dynamostore, the SDK's
// retries included, in a world where everything that can go wrong does: requests
// and replies get lost, come late or twice, DynamoDB throttles, fails after the
// write and reports conflicts, clocks differ, processes die at any point, stall
// past their lease and come back, TTL deletes as it pleases.
//
// A world lives in one testing/synctest bubble: its time is virtual, so an hour
// costs nothing. Whatever chance decides comes from one seed, and one request at
// a time reaches package memdynamo's DynamoDB, in an order that the seed decides. The
// same seed gives the same run, to the nanosecond.
//
// # A run by seed
//
// [Run] (run.go) makes a world (world.go, with its agenda.go) and draws a plan of
// what will go wrong (plan.go). Clients (client.go) send requests. Each starts a
// process (actor.go) with a guard of its own around the script's handler
// (handler.go), which ends in one of the ways that endings.go lists with what the
// rules say of each. What the guard's SDK sends goes over the network
// (network.go), where each request may meet a fault (faults.go). When the clients
// are done, faults end, and a probe asks for every key once more.
//
// In a half of the plans the handler's effect is a transfer that it enlists
// (effects.go), with a lock, optimistically, unguarded or after failing open. In
// some it calls other services in steps (steps.go), makes guarded calls of its own
// (inner.go), or its answers are compressed
// or go into parts (parts.go). In some, operators release, settle and purge records
// meanwhile (operators.go, operators_book.go), deployments change how fingerprints are
// made (deployments.go), or nobody can reach the table for a while (outages.go). In plans
// with an outage a process serves several invocations with one guard (process.go).
//
// # Every order of a small case
//
// [Play] (small.go) runs a few attempts in one order of their requests. A tree of
// decisions (tree.go) takes the place of chance, and walks through all orders.
//
// # Several Regions
//
// [RunRegions] has the table be a global one (regions.go, regions_run.go). With
// eventual consistency each Region decides by a copy of its own, and its writes
// arrive in the other one late, one by one, out of order; the last writer wins. With
// strong consistency all see one table, without TTL and transactions, and a write may
// be refused for one of another Region's. What holds, and what must break, is what
// docs/regions.md says of it: requests of a key in one Region or in any, and a Region
// that fails and whose keys move (failover.go). [TwoRegions] is the least case that
// breaks: one key in two Regions, and nothing else that goes wrong.
//
// # What is recorded
//
// The book (book.go) keeps everything that happens: which attempt ran when, which
// effect it had, what every client was told. Its records (book_record.go) are
// what each write made of an item. transactions.go is what became of each
// TransactWriteItems, and names the paths that some transaction must have gone.
// timeline.go has all of it in the order of time, and prints it. diagram.go and
// diagram_record.go draw it for a browser.
//
// # How it is judged
//
// checks.go names every check, with the rule that it holds a run against.
// checks_write.go looks at each write, checks_answer.go at what clients were
// told, checks_run.go at the runs of the handler, checks_effect.go at what was
// enlisted; steps.go, parts.go and leaseindex.go hold what they record. linearizable.go hands what
// clients saw to porcupine, with a model of the contract. A run that breaks a
// rule prints its timeline. Mutations (mutation.go) are deliberate mistakes,
// which the checks must find.
package simulator
