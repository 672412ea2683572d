// Package watch is a Lambda function on a schedule that finds attempts that died. An attempt
// that died can't report itself, because its process is gone. It leaves a lease that has ended
// and a record that nobody completed. The function counts such leases, and the records that
// are held for an operator, and writes their number and age as CloudWatch metrics. It also
// writes whether the table's TTL is enabled.
//
// This is the whole program:
//
//	package main
//
//	import "github.com/lambdaidem/toolkit/watch"
//
//	func main() { watch.Main() }
//
// watch.yaml, in the root of this module, is the template of the function, its schedule, its
// role and its alarms. It needs two parameters: the table of records, and the SNS topic that
// the alarms notify. docs/deploy.md shows how to nest it in a template, and the same in
// Terraform and CDK.
//
// The table must have an index of leases ([dynamostore.Options].LeaseIndex), and every function
// that writes records must set that option. The role of the function needs dynamodb:Query on
// the index, and dynamodb:GetItem and dynamodb:DescribeTimeToLive on the table.
//
// The function only reads. It releases no record, because a release states that the attempt had
// no effect, and the effects of an attempt that died are unknown. Under policy Rerun, no release
// is needed: the next request takes the record over. A release would only do harm: a request
// with another payload could use the key, and a guard with policy Hold would run the handler
// without an operator's decision. Under policy Hold, an operator decides.
//
// [Handler] is for a program that configures its store or its metrics in Go.
package watch
