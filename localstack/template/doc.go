// Package template reads an AWS SAM template for what a local run needs: the
// functions with their timeouts, environment and routes, and the DynamoDB
// tables.
//
// It evaluates the intrinsic functions that such templates use (Ref, GetAtt,
// Sub, Join, Select, Split, If, FindInMap and the condition functions) and
// refuses the others with an error that names the line. Only what a local run
// needs is evaluated: a policy, an alarm or an output may use anything.
//
// Property names and defaults follow "AWS SAM resource and property reference"
// and "Intrinsic function reference" of the AWS documentation.
package template
