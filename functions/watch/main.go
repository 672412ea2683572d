// Command watch is a Lambda function on a schedule. It counts the leases whose attempts died.
package main

import "github.com/lambdaidem/toolkit/watch"

func main() { watch.Main() }
