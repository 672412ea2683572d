// Package stack starts everything that a SAM template describes on this machine,
// this project's own template.yaml unless another is named:
// DynamoDB Local with the tables, the functions as the binaries that deploy,
// and the Lambda emulator with the HTTP API before them.
//
//	s, err := stack.Start(ctx, stack.Options{})
//	if err != nil {
//		return err
//	}
//	defer s.Stop()
//	resp, err := http.Get(s.URL() + "/payments/1")
//
// It is what the demo, `make up` and the end-to-end tests have in common.
package stack
