// Command up leaves functions running on this machine until Ctrl-C: the HTTP API
// on port 3000 or the one in PORT, with DynamoDB Local behind it. They are this
// project's own, or those of the SAM template that -template names. It ends with
// status 0 after Ctrl-C, with 1 if it could not start or stop, and with 2 for
// wrong arguments. A second Ctrl-C ends it at once.
//
// Every few seconds in which something happened it says what the functions' metrics
// tell, and at the end what they told in all.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/elasticmq"
	"github.com/lambdaidem/toolkit/localstack/internal/pipe"
	"github.com/lambdaidem/toolkit/localstack/stack"
	"github.com/lambdaidem/toolkit/localstack/template"
)

const usage = `usage: up [-template FILE] [-parameter NAME=VALUE]... [-reference NAME=VALUE]... [-metrics] [-no-iam]

Leaves the functions running on this machine until Ctrl-C: the HTTP API on port 3000 or
the one in PORT, with DynamoDB Local behind it. DynamoDB Local is on the port after it,
SQS on the second, the switches of rehearsals are on the third, and a page that shows what
happens is on the fourth, if these are free.

  -template FILE          a SAM template of your own, whose functions are built and run.
                          Default: that of this project, in a checkout of it.
  -parameter NAME=VALUE   the value of a parameter of the template that has no default,
                          or is to have another. May be repeated.
  -reference NAME=VALUE   the value of a dynamic reference: of {{resolve:ssm:/shop/a}}
                          the name is ssm:/shop/a. May be repeated.
  -metrics                show the lines of the functions' logs that the metrics are read
                          from, beside the summaries of them.
  -no-iam                 let the functions call DynamoDB and SQS whatever the policies of
                          their roles say. Default: refuse what AWS would refuse.
`

func main() {
	options := stack.Options{Parameters: map[string]string{}, References: map[string]string{}}
	flags := flag.NewFlagSet("up", flag.ExitOnError) // status 0 for -h, 2 for anything unknown
	flags.Usage = func() { _, _ = fmt.Fprint(flags.Output(), usage) }
	flags.StringVar(&options.Template, "template", "", "")
	flags.Var(values(options.Parameters), "parameter", "")
	flags.Var(values(options.References), "reference", "")
	var report reporter
	flags.BoolVar(&report.documents, "metrics", false, "")
	flags.BoolVar(&options.NoIAM, "no-iam", false, "")
	_ = flags.Parse(os.Args[1:])
	if flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "up: it takes no arguments, and got %q\n", flags.Arg(0))
		flags.Usage()
		os.Exit(2)
	}
	// A closed terminal is a reason to stop in order too, and so is a closed pipe of the output.
	// SIGPIPE itself isn't: it also comes from connections that a browser or a client has closed.
	pipe.Outlive()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	endBySecond(ctx)
	ctx, hangUp := context.WithCancel(ctx)
	report.w, report.log = pipe.Output{W: os.Stdout, Stop: hangUp}, pipe.Output{W: os.Stderr, Stop: hangUp}
	giveBack := takeTerminal()
	err := run(ctx, report.w, options, &report)
	giveBack()
	stop()
	hangUp()
	if err != nil {
		fmt.Fprintln(os.Stderr, "up:", err)
		os.Exit(1)
	}
}

// values collects flags of the form NAME=VALUE.
type values map[string]string

func (v values) String() string { return "" } // flag asks for defaults, and there are none

func (v values) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return errors.New("it has to be NAME=VALUE")
	}
	if _, twice := v[name]; twice {
		return fmt.Errorf("%s has a value already", name)
	}
	v[name] = value
	return nil
}

// run leaves everything running until ctx ends, and reports what the functions count.
func run(ctx context.Context, stdout io.Writer, options stack.Options, report *reporter) error {
	text := cmp.Or(os.Getenv("PORT"), "3000")
	port, err := strconv.Atoi(text)
	if err != nil || port < 1 || port > 65535 {
		return fmt.Errorf("PORT is %q: set it to a number from 1 to 65535", text)
	}
	options.Port = port
	board, err := startSwitchboard(preferred(port + 3)) //nolint:mnd // see preferred
	if err != nil {
		return err
	}
	defer board.close()
	options.Emulator = board.between
	options.Database = func(o *ddblocal.Options) { o.Port = preferred(port + 1) }
	options.Queues = func(o *elasticmq.Options) { o.Port = preferred(port + 2) } //nolint:mnd // see preferred
	options.FunctionLog = report.seen.Log(report.log, report.documents)
	// A signal cuts the start short, but not what runs: Stop lets requests under
	// way finish.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	started := context.AfterFunc(ctx, end)
	s, err := stack.Start(life, options)
	if err != nil {
		return withFlags(err)
	}
	if err := board.begin(s, preferred(port+4)); err != nil { //nolint:mnd // see preferred
		return errors.Join(err, s.Stop())
	}
	show, message := guide, ""
	if options.Template == "" {
		show, message = projectGuide, aNotification
		for _, user := range []string{"alice", "bob"} {
			if err := s.OpenAccount(life, user, "EUR", opening); err != nil {
				return errors.Join(err, s.Stop())
			}
		}
	}
	if started() {
		show(stdout, s)
		if err := queueGuide(ctx, stdout, s, message); err != nil && ctx.Err() == nil {
			return errors.Join(err, s.Stop())
		}
		board.guide(stdout, s)
		_, _ = fmt.Fprint(stdout, "\nCtrl-C stops everything.\n")
		ticker := time.NewTicker(pause)
		report.follow(ctx, ticker.C)
		ticker.Stop()
	}
	farewell(os.Stderr, s)
	err = errors.Join(board.window.Close(), s.Stop())
	report.end()
	if checker := s.IAM(); checker != nil {
		checker.Report(report.w)
	}
	return err
}

// preferred returns a port of loopback if it is free, else 0, for any free one. So up
// has the same ports after a restart, and commands in a shell's history still work:
// DynamoDB Local is on the port after PORT, SQS on the second, rehearsals are on the
// third, and the window is on the fourth.
func preferred(port int) int {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return 0
	}
	_ = listener.Close()
	return port
}

// withFlags adds to an error about missing values the flags that give them.
func withFlags(err error) error {
	var missing *template.MissingValueError
	if !errors.As(err, &missing) {
		return err
	}
	var flags strings.Builder
	for _, name := range missing.Parameters {
		flags.WriteString(" -parameter " + name + "=VALUE")
	}
	for _, name := range missing.References {
		flags.WriteString(" -reference " + name + "=VALUE")
	}
	return fmt.Errorf("%w\nup takes them by%s", err, &flags)
}
