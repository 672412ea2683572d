// Package stack starts everything that a SAM template describes on this machine: DynamoDB Local
// with the tables, ElasticMQ with the queues, and the Lambda emulator, which runs the binaries
// of the functions behind their APIs. The functions may do only what the policies of their roles
// allow. The default template is this project's template.yaml.
//
//	s, err := stack.Start(ctx, stack.Options{})
//	if err != nil {
//		return err
//	}
//	defer s.Stop()
//	resp, err := http.Get(s.URL() + "/payments/1")
//
// The demo, `make up` and the end-to-end tests use this package.
package stack
