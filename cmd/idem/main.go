// Command idem is the operator's tool for a DynamoDB table of idempotency records. It
// checks the table, lists records whose attempts died, shows a record, releases or settles
// it, and purges answers.
//
//	go install github.com/lambdaidem/toolkit/cmd/idem@latest
//	idem --table idempotency leases
//
// docs/idem.md describes each command, with its output, the exit codes, and the IAM
// permissions that the command needs.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/lambdaidem/toolkit/cmd/idem/internal/commands"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal kills the process at once
	return commands.Run(ctx, os.Args[1:], commands.Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Asks:  term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd())),
		Draws: term.IsTerminal(int(os.Stderr.Fd())),
	})
}
