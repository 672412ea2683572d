// Package metrics reads the metrics that functions write to their logs in CloudWatch's embedded
// metric format (Amazon CloudWatch, "Specification: Embedded metric format"). It interprets them
// as CloudWatch Logs would, for local runs.
//
// [Parse] reads one line, with any namespace, dimensions and metrics. [Collector] removes such
// lines from a function's log and adds up their values. [Summary] describes the metrics of guards
// in one line.
package metrics
