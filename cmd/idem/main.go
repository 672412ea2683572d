// Command idem is for the operator who is called at three in the morning: it checks
// a table of idempotency records, finds leases whose attempts died, shows a record
// with all that is known of it, releases or settles it, and purges answers.
//
//	go install github.com/lambdaidem/toolkit/cmd/idem@latest
//	idem --table idempotency leases
//
// docs/idem.md has every command with what it prints, the exit codes, and the least
// policy that it needs.
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
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	return commands.Run(ctx, os.Args[1:], commands.Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Asks:  term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd())),
		Draws: term.IsTerminal(int(os.Stderr.Fd())),
	})
}
