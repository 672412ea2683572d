// Package e2e_test tests the sample functions with the same binaries that are deployed. It sends
// real HTTP requests through the Lambda emulator; the functions use DynamoDB Local.
package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/localstack/stack"
)

// everything is the stack that all tests of this process share.
var everything *stack.Stack

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) (status int) {
	var log bytes.Buffer // the stack serializes writes; read only after the stack has stopped
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	var err error
	everything, err = stack.Start(ctx, stack.Options{FunctionLog: &log})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := everything.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop everything:", err)
			status = 1
		}
		if status != 0 {
			fmt.Fprintf(os.Stderr, "what the functions logged:\n%s\n", log.Bytes())
		}
	}()
	return m.Run()
}
