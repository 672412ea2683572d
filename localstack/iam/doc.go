// Package iam checks what the functions of a SAM template do against the policies of their
// roles, and refuses the rest as AWS does: for running SAM applications on this machine.
//
//	sam, err := template.Read("template.yaml", template.Options{})
//	checker, err := iam.New(sam)
//	err = checker.CheckSources()
//	proxy, err := checker.Start(iam.DynamoDB, "http://127.0.0.1:8000", "local", os.Stderr)
//	defer proxy.Close()
//
// Each function must have an access key ID of its own, [AccessKeyID], and proxy.URL() as its
// endpoint of DynamoDB.
//
// Only identity-based policies count: those of the role, inline or managed, and those that SAM
// adds. If a decision depends on something that only AWS knows, such as a managed policy of
// the account or a condition on the address of the caller, a request passes, and the proxy says
// so. IAM.md lists what is checked.
package iam
