// Package deliveries runs guarded consumers of queues and streams, the real guard
// over the real dynamostore, against sources that do what AWS's do: deliver again
// and twice, bring a batch back after a process died, hold a group while one of it is
// in flight, split a batch that failed, and give a message up at last. Requests to
// the database get lost, come late, fail and throttle; processes die at any point and
// run into their timeouts; handlers fail, panic and take long.
//
// A run lives in one testing/synctest bubble, and what chance decides comes from its
// seed (world.go). A source (queue.go, stream.go) hands batches to processes
// (process.go); each handler enlists one effect. When the messages are through, what
// happened is held against V2, V3 and G1 (checks.go): an effect for each message, once;
// failures exactly those reported; the order of each group kept.
//
// A seed draws the same plan and the same faults each time. Where several messages run
// at once in a process, which of them meets a fault is up to the scheduler.
package deliveries
