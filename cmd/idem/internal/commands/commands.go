// Package commands is the command idem but for its process: what it does is in
// package dynamostore, and here is how it is asked for and what it says.
package commands

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Asks     bool // a person at a terminal can be asked
	Draws    bool // Err is a terminal: a progress bar makes sense
}

// Run runs a command line and returns its exit code: see exit.go.
func Run(ctx context.Context, args []string, streams Streams) int {
	root := newRoot(streams)
	root.SetArgs(args)
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	command, err := root.ExecuteContextC(ctx)
	if err != nil {
		say(printer{streams.Err}, "idem: %v\n", err)
		if code := exitOf(err); code == exitUsage {
			say(printer{streams.Err}, "Run '%s --help' for usage.\n", command.CommandPath())
			return code
		}
		return exitOf(err)
	}
	return exitDone
}

// app is what all commands of one run share.
type app struct {
	In          io.Reader
	Out, Err    printer
	Asks, Draws bool // as in Streams

	connection

	output string
}

func newRoot(streams Streams) *cobra.Command {
	a := &app{In: streams.In, Out: printer{streams.Out}, Err: printer{streams.Err}, Asks: streams.Asks, Draws: streams.Draws}
	root := &cobra.Command{
		Use:   "idem",
		Short: "Look at idempotency records, and decide over those that wait for somebody",
		Long: `idem works on a DynamoDB table of the toolkit's idempotency records.

AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL_DYNAMODB, the shared configuration files
and single sign-on count as they do for the AWS CLI. Whether a lease is live is
judged by DynamoDB's clock, never by that of this machine.

Exit codes: ` + exitHelp,
		Version:       version(),
		SilenceErrors: true, SilenceUsage: true,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	a.flags(root.PersistentFlags())
	root.PersistentFlags().StringVarP(&a.output, "output", "o", outputTable, "table, for people, or json, for programs")
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if a.output != outputTable && a.output != outputJSON {
			return usage(fmt.Errorf("--output is %q; it must be %s or %s", a.output, outputTable, outputJSON))
		}
		return nil
	}
	for _, command := range []func(*app) *cobra.Command{newCheck, newLeases, newWatch, newShow, newTrace, newRelease, newSettle, newPurge} {
		root.AddCommand(command(a))
	}
	return root
}

// version returns the module's, as the go command has built it in.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// The forms of output.
const (
	outputTable = "table"
	outputJSON  = "json"
)

// arguments wraps a rule of cobra's, so that breaking it is a mistake of usage.
func arguments(rule cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error { return usage(rule(c, args)) }
}
