package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
which the guard makes the id: --key with --namespace, --caller, and --route or --operation.`,
		Example: `  idem show lambdaidem#yVLK2aFQkF3…
  idem show --namespace shop --route 'POST /payments' --caller 'jwt:https://issuer|alice' --key k1`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			s, _, err := a.store(c.Context())
			if err != nil {
				return err
			}
			seen, _, err := a.find(c, s, &who, args)
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

// find reads the record that the command line identifies. It also returns the key of the record,
// unless the command line has its id. It returns an error with the exit code exitNone if there
// is no such record, and with exitUsage if the command line fits several records.
func (a *app) find(c *cobra.Command, s *dynamostore.Store, who *identity, args []string) (seen dynamostore.Inspected, key string, err error) {
	if err := givenNonEmpty(c.Flags(), "id-prefix", "tenant"); err != nil {
		return seen, "", usage(err)
	}
	candidates, err := who.candidates(s, args)
	if err != nil {
		return seen, "", err
	}
	var found []dynamostore.Inspected
	var ids, keys []string // ids has those of all candidates, keys those of the records that were found
	for _, may := range candidates {
		one, err := inspect(c.Context(), s, may.id)
		if err != nil {
			return seen, "", err
		}
		ids = append(ids, may.id)
		if one.Record.State != lambdaidem.Absent {
			found, keys = append(found, one), append(keys, may.key)
		}
	}
	switch {
	case len(found) > 1:
		say(a.Err, "%d records fit:\n", len(found))
		for i, one := range found {
			v := viewOf(one)
			say(a.Err, "  %s  %s, %s, key %s\n", v.ID, v.Kind, v.State, clip(keys[i]))
		}
		return seen, "", usage(errors.New("several records fit; give the id of one of them instead of the flags"))
	case len(found) == 1:
		if keys[0] != who.Key {
			say(a.Err, "NOTE: no record has the key %s as it stands. This is the record of the key %s, which a guard reads from a header with that text.\n", clip(who.Key), clip(keys[0]))
		}
		return found[0], keys[0], nil
	case len(args) == 1:
		err = fmt.Errorf("there is no record %s", args[0])
	default:
		err = fmt.Errorf("there is no record of this key (%s); compare the namespace, the route, the caller, --id-prefix and the table with the log line of a request: another spelling is another record. A call that ran unguarded has none: the log has a line \"failed_open\" or \"switched_off\"", strings.Join(ids, " or "))
	}
	return seen, "", codedError{err, exitNone}
}

// inspect reads the record with the id. If there is no such record, its State is Absent.
func inspect(ctx context.Context, s *dynamostore.Store, id string) (dynamostore.Inspected, error) {
	seen, err := s.Inspect(ctx, id)
	if err != nil {
		return seen, fmt.Errorf("read %s: %w", id, err)
	}
	seen.Record.ID = id
	return seen, nil
}
