// Package operate_test tests docs/operate.md. It causes each incident of that page on this
// machine, with the same binaries of the functions that a deployment uses. Then a shell
// runs the page's commands, as an operator would type them. The commands must print what
// the page shows, and solve the incident.
//
// To write the output of the commands into the page, run:
//
//	go test ./localstack/operate -update
package operate_test
