// Command demo shows the toolkit at work. It starts DynamoDB Local, the Lambda emulator and the
// functions, as the same binaries that are deployed. It sends real requests over HTTP, prints
// each answer with the DynamoDB item behind it, and checks all of them. If an answer is wrong, it
// prints what was expected and exits with status 1. For wrong arguments, the status is 2.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/lambdaidem/toolkit/localstack/internal/pipe"
	"github.com/lambdaidem/toolkit/localstack/stack"
)

const usage = `usage: demo [-logs] [-soak N [-seed S]]

Sends real requests to the real functions, prints each answer with the DynamoDB item
behind it, and checks them: status 1 if any is wrong. Run it in a checkout of the project.
With -soak it sends N payments through the stream and the queue instead, under faults.
`

func main() {
	flags := flag.NewFlagSet("demo", flag.ExitOnError) // status 0 for -h, 2 for anything unknown
	flags.Usage = func() {
		_, _ = fmt.Fprint(flags.Output(), usage+"\n")
		flags.PrintDefaults()
	}
	logs := flags.Bool("logs", false, "print what the functions logged even if all went well")
	times := flags.Int("soak", 0, "send this many payments under faults, instead of telling the story")
	seed := flags.Uint64("seed", uint64(time.Now().UnixNano()), "what -soak draws its faults by")
	_ = flags.Parse(os.Args[1:])
	if flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "demo: it takes no arguments, and got %q\n", flags.Arg(0))
		flags.Usage()
		os.Exit(2)
	}
	// If the terminal or the pipe of the output is closed, stop everything properly too. SIGPIPE
	// itself is no reason to stop: it also comes from connections that another program has closed.
	pipe.Outlive()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	ctx, hangUp := context.WithCancel(ctx)
	out := pipe.Output{W: os.Stdout, Stop: hangUp}
	play := func() error { return run(ctx, out, *logs) }
	if *times > 0 {
		play = func() error { return soak(ctx, out, *times, *seed, *logs) }
	}
	err := play()
	stop()
	hangUp()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// patience is the time limit for the whole story after everything was started.
const patience = 4 * time.Minute

func run(ctx context.Context, out io.Writer, logs bool) error {
	var log bytes.Buffer // the stack serializes writes; read only after the stack has stopped
	counted := newSends()
	s, err := stack.Start(ctx, stack.Options{FunctionLog: &log, QueueEndpoint: counted.between, Change: hurried})
	if err != nil {
		return err
	}
	err = errors.Join(tell(ctx, s, counted, out), s.Stop())
	if err != nil || logs {
		fmt.Fprintf(os.Stderr, "\nWhat the functions logged:\n%s\n", log.Bytes())
	}
	return err
}

// tell plays the story on a running stack.
func tell(ctx context.Context, s *stack.Stack, counted *sends, out io.Writer) (err error) {
	d := newDemo(s, counted, out)
	folder, err := os.MkdirTemp("", "lambdaidem-demo-")
	if err != nil {
		return fmt.Errorf("a folder for the operator's command: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	fmt.Fprintln(os.Stderr, "building idem …")
	if d.operator, err = buildOperator(ctx, s, folder); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	d.out.title(s.URL())
	if err := d.openAccounts(ctx, s); err != nil {
		return err
	}
	if err := d.play(ctx); err != nil {
		return err
	}
	return d.out.summary()
}
