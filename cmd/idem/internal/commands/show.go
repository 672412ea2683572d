package commands

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

func newShow(a *app) *cobra.Command {
	var (
		who        identity
		downstream []string
	)
	c := &cobra.Command{
		Use:   "show [ID]",
		Short: "Show a record: its state, its answer decoded, its steps, and what operators did",
		Long: `Show a record by its id, which events, logs and leases contain, or by the values from
which the guard makes the id: --key with --namespace, --caller, and --route, --path or
--operation.`,
		Example: `  idem show lambdaidem#yVLK2aFQkF3…
  idem show --namespace shop --route 'POST /payments' --caller 'jwt:https://issuer|alice' --key k1`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			s, _, err := a.store(c.Context())
			if err != nil {
				return err
			}
			seen, err := a.find(c, s, &who, args)
			if err != nil {
				return err
			}
			v := viewOf(seen).withAnswer(c.Context(), s, seen.Record)
			for _, name := range downstream {
				v.Downstream = append(v.Downstream, downstreamView{name, seen.Record.DownstreamKey(name)})
			}
			return a.printRecord(v)
		},
	}
	who.flags(c.Flags())
	c.Flags().StringArrayVar(&downstream, "downstream", nil, "also show the key that the handler passed on under this name, as lambdaidem.DownstreamKey returns it; may be repeated")
	return c
}

// find reads the record that the command line identifies. It returns an error with the exit
// code exitNone if there is no such record.
func (a *app) find(c *cobra.Command, s *dynamostore.Store, who *identity, args []string) (dynamostore.Inspected, error) {
	if err := givenNonEmpty(c.Flags(), "id-prefix", "tenant"); err != nil {
		return dynamostore.Inspected{}, usage(err)
	}
	id, err := who.record(s, args)
	if err != nil {
		return dynamostore.Inspected{}, err
	}
	seen, err := s.Inspect(c.Context(), id)
	if err != nil {
		return seen, fmt.Errorf("read %s: %w", id, err)
	}
	if seen.Record.State == lambdaidem.Absent {
		if len(args) == 0 {
			err = fmt.Errorf("there is no record %s of this key; compare the namespace, the route, the caller, --id-prefix and the table with the log line of a request: another spelling is another record. A call that ran unguarded has none: the log has a line \"failed_open\" or \"switched_off\"", id)
		} else {
			err = fmt.Errorf("there is no record %s", id)
		}
		return seen, codedError{err, exitNone}
	}
	return seen, nil
}
