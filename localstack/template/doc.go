// Package template reads those parts of an AWS SAM template that a local run needs: the
// functions with their timeouts, environments, routes and event sources, the DynamoDB tables
// and the SQS queues.
//
// It evaluates the intrinsic functions Ref, GetAtt, Sub, Join, Select, Split, If, FindInMap and
// the condition functions. It refuses the others with an error that names the line. It
// evaluates only values that a local run needs, so policies, alarms and outputs may use any
// function.
//
// The names and defaults of properties follow the pages "AWS SAM resource and property
// reference" and "Intrinsic function reference" of the AWS documentation.
package template
