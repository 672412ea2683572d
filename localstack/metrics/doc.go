// Package metrics reads what functions write in CloudWatch's embedded metric format
// (Amazon CloudWatch, "Specification: Embedded metric format"), as CloudWatch Logs
// would, for runs on this machine.
//
// [Parse] makes data of one line, whoever wrote it: any namespace, dimensions and
// metrics. [Collector] takes the lines out of a function's log and keeps their data;
// [Summary] says in one line what a guard's metrics tell of them.
package metrics
