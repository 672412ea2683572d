package commands

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

func newSettle(a *app) *cobra.Command {
	var (
		d      decisionFlags
		answer givenAnswer
	)
	c := &cobra.Command{
		Use:   "settle [ID]",
		Short: "Complete a record whose attempt died or is held, with an answer that every retry gets",
		Long: `Settle a record with an answer that you give. Every retry gets this answer, and none
runs the handler. Do it if you know what happened. The answer must fit the record's kind:

  http     --status, --header, and --body or --body-file; or --answer-file, a file with
           the response in the form in which records store it
  value    --value or --value-file: the JSON of the result, as the handler's type
           encodes it, with its members in any order; or --fail-code and --fail-message
           for a permanent failure. A retry of a typed handler gets the code as
           errorType. --fail-type gives another errorType, such as the name of the Go
           type of the error that the handler would have returned
  message  no flag: a message has no other answer than that it is done
  any      --no-answer: no retry runs the handler, and retries get "answer unavailable".
           A message then fails until it is in its dead-letter queue, unless you add
           --outcome succeeded

An answer that can't be sent is refused, for example if Content-Length is not the length
of the body, if a response with status 204 has a body, or if a header has a line break.

The record is changed under the same conditions as by release. It keeps its fingerprint,
and its TTL starts now. --again settles a record again that an operator has settled;
callers may have received the first answer.`,
		Example: `  idem settle ID --token T --reason 'TICKET-1: the bank has it' \
    --status 201 --header 'Content-Type: application/json' --body '{"id":"p-1"}'`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			var result lambdaidem.Result
			d.check = func(seen dynamostore.Inspected) (err error) {
				if seen.Record.State == lambdaidem.Released && d.yes && !d.released {
					return printChanged(a, seen, fmt.Errorf("%w? It is released: its handler or an operator says that nothing happened, and the next retry runs. "+
						"If none must run, add --released", dynamostore.ErrRecordChanged))
				}
				if result, err = answer.result(c.Context(), a, viewOf(seen).Kind); err != nil {
					return usage(err)
				}
				if err := a.keys.checkFor(a, seen, result); err != nil {
					return err
				}
				return usage(lambdaidem.CheckResult(seen.Record.Scope, result))
			}
			o, s, seen, err := d.prepare(a, c, args, "Settle the record, so that every retry gets your answer?")
			if err != nil {
				return err
			}
			now, err := o.Settle(c.Context(), seen, result)
			if errors.Is(err, dynamostore.ErrRecordSettled) {
				err = fmt.Errorf("%w; --again settles it again", err)
			}
			if err != nil {
				return printChanged(a, now, err)
			}
			return a.printRecord(viewOf(now).withAnswer(c.Context(), s, now.Record))
		},
	}
	d.flags(c.Flags())
	c.Flags().BoolVar(&d.released, "released", false, "with --yes: also settle a released record")
	c.Flags().BoolVar(&d.again, "again", false, "settle a record again that an operator has settled; callers may have received the first answer")
	answer.flags(c.Flags())
	return c
}
