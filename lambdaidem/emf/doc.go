// Package emf counts the outcomes of guarded calls as CloudWatch metrics. Its [Observer]
// writes each event as one line of JSON, called a document here, in CloudWatch's embedded
// metric format (Amazon CloudWatch, "Specification: Embedded metric format"). On Lambda,
// CloudWatch extracts the metrics from the lines on standard output. No agent, permission
// or API call is needed.
//
//	metrics := emf.New(func(o *emf.Options) { o.Service = "payments" })
//	guard := lambdaidem.New(store, func(o *lambdaidem.Options) {
//		o.Observer = lambdaidem.Observers(o.Observer, metrics) // keeps the default observer, which logs to slog
//	})
//
// [Metrics] lists all metrics. docs/metrics.md explains them and has an example of an
// alarm.
//
// Each metric has two sets of dimensions: [service, function] and [service, function,
// route]. The first set is for alarms, because an alarm can't add up the metrics of
// several routes. A route is a route template or the name of an operation, or "(none)". It
// is never a path, a key, a caller or any other text that a client or a sender chose.
//
// A guard can't report that its own attempt died. A program that looks for dead leases in
// the store reports what it found with [Observer.DeadLeases]. Package watch of this module is
// such a program.
//
// # No buffering
//
// Lambda freezes a process once it has responded, and may never resume it. Buffered metrics would
// be late or lost. So Observe writes the document at once, before the response is sent, and there
// is nothing to flush. Every document stays far below CloudWatch's limits, because one event has at
// most seven values. The cost is a line of about 500 bytes for each event.
//
// # Log queries
//
// A document also has members that are not metrics: the reason of a store's failure and,
// if [Options].Records is set, the record's id and the outcome. They can be queried with
// CloudWatch Logs Insights. docs/metrics.md has example queries.
//
// # Log format
//
// With Lambda's JSON log format, Lambda passes on unchanged a line that is already JSON
// (AWS Lambda, "Configuring JSON and plain text log formats"). A line without a level
// counts as INFO. With an ApplicationLogLevel above INFO, Lambda drops these lines, and
// there are no metrics (AWS Lambda, "Log-level filtering").
package emf
