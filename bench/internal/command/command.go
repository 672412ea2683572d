// Package command runs the programs of the benchmarks: it handles flags, interrupts and exit
// statuses in the same way for all of them.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

// Main passes args to parse and the settings that parse returns to run, and returns the status
// with which the program must exit: 0, or 1 if run fails, or 2 if parse fails. If the arguments
// ask for help, parse returns flag.ErrHelp and the status is 0. Main calls run as Run does. It
// does not print an error of parse, because Parse has done so.
func Main[Settings any](name string, args []string, parse func(args []string) (Settings, error), run func(context.Context, Settings) error) int {
	settings, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	return Run(name, func(ctx context.Context) error { return run(ctx, settings) })
}

// Run calls run with a context that an interrupt cancels. It returns 0, or 1 if run fails. It
// prints the error of run, after the name of the program, on standard error.
func Run(name string, run func(context.Context) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}

// Parse parses args, which must consist of flags only. Then it calls check, which returns an
// error if the values of the flags don't make sense. Parse prints any error, with the usage of
// the program, where flags prints its own errors.
func Parse(flags *flag.FlagSet, args []string, check func() error) error {
	if err := flags.Parse(args); err != nil {
		return err // flags has printed it
	}
	var err error
	if flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	} else {
		err = check()
	}
	if err != nil {
		_, _ = fmt.Fprintf(flags.Output(), "%s: %v\n", flags.Name(), err)
		flags.Usage()
	}
	return err
}
