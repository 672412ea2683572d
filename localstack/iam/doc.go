// Package iam checks the calls of functions to DynamoDB and SQS against the policies of their
// roles in a SAM template. A [Proxy] refuses the calls that AWS would refuse, so that a local run
// shows missing permissions.
//
//	sam, err := template.Read("template.yaml", template.Options{})
//	checker, err := iam.New(sam)
//	err = checker.CheckSources()
//	proxy, err := checker.Start(iam.DynamoDB, "http://127.0.0.1:8000", "local", os.Stderr)
//	defer proxy.Close()
//
// Each function must run with the access key ID that [AccessKeyID] returns for it, and with
// proxy.URL() as its endpoint of DynamoDB.
//
// Only identity-based policies count: the inline and managed policies of the role, and the
// policies that SAM adds. If a decision depends on something that only AWS knows, such as a
// managed policy of the account or a condition on the client's IP address, the request passes,
// and the proxy writes a warning. IAM.md lists what is checked.
package iam
