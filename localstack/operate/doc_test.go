// Package operate_test holds docs/operate.md to the truth: each case of that page is
// brought about on this machine, with the functions as the binaries that deploy, and
// then the very commands that stand there are run, by a shell, as an operator would
// type them. What they print is on the page, and the case must be solved by them.
//
//	go test ./localstack/operate -update
//
// writes what they print into the page.
package operate_test
