// Package commands implements the subcommands of idem: their flags, their prompts and their
// output. Package dynamostore does the work. Package main adds only signals, standard
// streams and the exit code.
package commands

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Streams are the standard streams of the process.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Asks     bool // In and Err are terminals, so a person can be asked for confirmation
	Draws    bool // Err is a terminal, so it can show a progress bar
}

// Run runs idem with the given arguments, without the name of the program. It returns the
// exit code: 0 on success, and otherwise one of those that idem --help lists.
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

// app holds what all subcommands need: the streams and the values of the global flags.
type app struct {
	In          io.Reader
	Out, Err    printer
	Asks, Draws bool // as in Streams

	connection

	output string // --output: outputTable or outputJSON
}

func newRoot(streams Streams) *cobra.Command {
	a := &app{In: streams.In, Out: printer{streams.Out}, Err: printer{streams.Err}, Asks: streams.Asks, Draws: streams.Draws}
	root := &cobra.Command{
		Use:   "idem",
		Short: "Inspect idempotency records, and resolve those that wait for an operator",
		Long: `idem works on a DynamoDB table of the toolkit's idempotency records.

AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL_DYNAMODB, the shared configuration files
and single sign-on work as in the AWS CLI. idem uses DynamoDB's clock, never that of
this machine, to decide whether a lease is live.

Exit codes: ` + exitHelp,
		Version:       version(debug.ReadBuildInfo()),
		SilenceErrors: true, SilenceUsage: true,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	a.flags(root.PersistentFlags())
	root.PersistentFlags().StringVarP(&a.output, "output", "o", outputTable, "the output format: table, or json for programs")
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

// The values of --output.
const (
	outputTable = "table"
	outputJSON  = "json"
)

// arguments returns a rule for positional arguments like the given one, whose errors have
// the exit code of a wrong command line.
func arguments(rule cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error { return usage(rule(c, args)) }
}
