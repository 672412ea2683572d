package commands

import (
	"github.com/spf13/cobra"
)

func newRelease(a *app) *cobra.Command {
	var d decisionFlags
	c := &cobra.Command{
		Use:   "release [ID]",
		Short: "Release a record whose attempt died or is held, so that the next retry runs",
		Long: `Release a record that an attempt left in progress, so that the next retry runs the
handler again. Do it if you know that nothing happened, or that repeating the operation
does no harm.

The record is changed only if it still has the token that show printed, and gets a new
one. So an attempt that completes later is refused, and of two operators only one
succeeds. A record whose lease is live, by DynamoDB's clock and --max-skew, is refused.`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			o, _, seen, err := d.prepare(a, c, args, "Release the record, so that the next retry runs the handler again?")
			if err != nil {
				return err
			}
			now, err := o.Release(c.Context(), seen)
			if err != nil {
				return printChanged(a, now, err)
			}
			return a.printRecord(viewOf(now))
		},
	}
	d.flags(c.Flags())
	return c
}
