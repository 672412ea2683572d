// Package deliveries simulates guarded consumers of queues and streams. The guard and dynamostore
// are the real ones, and the sources behave like those of AWS: they deliver a message again or
// twice, deliver a batch again after its process died, hold a group back while one of its messages
// is in flight, split a batch that failed, and give a message up in the end. Requests to the
// database are lost, delayed, refused or throttled. Processes are killed at any point or exceed
// their timeout. Handlers fail, panic or take long.
//
// Each run is in one testing/synctest bubble, and its seed decides everything that is random
// (world.go). A source (queue.go, stream.go) hands batches to processes (process.go). Each handler
// enlists one effect. At the end checks.go examines the run: each message has its effect once or
// was given up, every message that was not reported as a failure has its effect, and the order of
// each group is kept.
//
// A seed draws the same plan and the same faults each time. But if a process handles several
// messages at once, the scheduler decides which of them meets a fault.
package deliveries
