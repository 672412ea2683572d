// Package emf counts what a guard does, as CloudWatch metrics: an
// [lambdaidem.Observer] that writes each event as one line in CloudWatch's embedded
// metric format (Amazon CloudWatch, "Specification: Embedded metric format"). On
// Lambda a line on standard output is all that it takes: there is no agent, no
// permission and no call to a service.
//
//	metrics := emf.New(func(o *emf.Options) { o.Service = "payments" })
//	guard := lambdaidem.New(store, func(o *lambdaidem.Options) {
//		o.Observer = lambdaidem.Observers(o.Observer, metrics) // warnings go on to slog
//	})
//
// [Metrics] lists what there is; docs/metrics.md explains it and has an alarm.
// The dimensions are [service, function], for alarms, which can't add up others, and
// [service, function, route]. A route is a template or an operation, or "(none)":
// never a path, a key, a caller or anything else that a client or a sender chose.
//
// Of attempts that died no guard can tell: [Observer.DeadLeases] writes what a look at
// the store's dead leases found.
//
// # Nothing is buffered
//
// A process on Lambda is frozen once its answer has left, and may never be thawed:
// what it still held would be late, or lost. So a document is written while the event
// is told, before the answer leaves, and there is nothing to flush. It also makes
// several invocations in one process no different from one, and keeps every document
// far below CloudWatch's limits, however large a batch is: one event has at most seven
// values. The price is a line of some 500 bytes for each event.
//
// # For readers of the log
//
// A document may have more than metrics: the reason why a store failed, and with
// [Options].Records the record's id and the outcome. CloudWatch Logs Insights finds
// them; docs/metrics.md has queries.
//
// # The log format
//
// With Lambda's JSON log format a line that is JSON already is taken as it is (AWS
// Lambda, "Configuring JSON and plain text log formats"). Lambda takes a line without
// a level for INFO: with an ApplicationLogLevel above INFO it drops these lines, and
// there are no metrics (AWS Lambda, "Log-level filtering").
package emf
