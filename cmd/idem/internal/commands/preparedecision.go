package commands

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// prepare does what release and settle have in common before they change a record. It reads
// the record and checks that its token is that of --token. It then shows the record and asks
// the question, unless --yes was given. It returns the record as it is after the operator has
// confirmed.
func (d *decisionFlags) prepare(a *app, c *cobra.Command, args []string, question string) (*dynamostore.Operator, *dynamostore.Store, dynamostore.Inspected, error) {
	none := dynamostore.Inspected{}
	if d.ttl < lambdaidem.MinTTL || d.maxSkew < 0 {
		return nil, nil, none, usage(fmt.Errorf("--ttl must be at least %v, --max-skew at least 0", lambdaidem.MinTTL))
	}
	if d.token == "" && (d.yes || !a.Asks) {
		return nil, nil, none, usage(errors.New("which attempt? Use --token with what show printed, so that nothing else is changed"))
	}
	s, _, err := a.store(c.Context())
	if err != nil {
		return nil, nil, none, err
	}
	o, err := d.operator(s, d.options)
	if err != nil {
		return nil, nil, none, err
	}
	seen, _, err := a.find(c, s, &d.who, args)
	if err != nil {
		return nil, nil, none, err
	}
	if d.token != "" && seen.Record.Token != d.token {
		return nil, nil, none, printChanged(a, seen, fmt.Errorf("%w: its token is %s, not %s", dynamostore.ErrRecordChanged, seen.Record.Token, d.token))
	}
	if d.check != nil {
		if err := d.check(seen); err != nil {
			return nil, nil, none, err
		}
	}
	if held := seen.Record.Held(); held && !c.Flags().Changed("ttl") {
		say(a.Err, "NOTE: the record lasts %v from now, and a retry after that runs again. If the guard's Options.TTL is longer, give it by --ttl.\n", d.ttl)
	}
	if d.again && seen.Record.State == lambdaidem.Completed {
		say(a.Err, "WARNING: callers may have received the answer that is there, and functions with Options.Cache may still replay it.\n")
	}
	if !d.yes {
		if err := viewOf(seen).withAnswer(c.Context(), s, seen.Record).text(a.Err); err != nil {
			return nil, nil, none, err
		}
		if d.force {
			say(a.Err, "--force: if its lease is live, its attempt may still be running.\n")
		}
		if err := d.ask(c.Context(), a, "yes", "%s", question); err != nil {
			return nil, nil, none, err
		}
		// Read the record again. The operator may have taken long to confirm, and if this
		// computer slept in the meantime, it does not know how much time has passed.
		now, err := s.Inspect(c.Context(), seen.Record.ID)
		if err != nil {
			return nil, nil, none, err
		}
		if now.Record.Token != seen.Record.Token || now.Record.State != seen.Record.State || len(now.Operations) != len(seen.Operations) {
			return nil, nil, none, printChanged(a, now, dynamostore.ErrRecordChanged)
		}
		seen = now
	}
	return o, s, seen, nil
}

// printChanged returns err. If err is dynamostore.ErrRecordChanged, printChanged first
// prints how the record has changed.
func printChanged(a *app, now dynamostore.Inspected, err error) error {
	if err != nil && errors.Is(err, dynamostore.ErrRecordChanged) && now.Record.ID != "" {
		v := viewOf(now)
		say(a.Err, "The record is now %s, attempt %d, token %s.\n", v.State, v.Attempt, v.Token)
		for _, op := range v.Operations[max(0, len(v.Operations)-1):] {
			say(a.Err, "Last operation: %s %s it at %s: %s\n", clip(op.By), op.What, op.At.Format(time.RFC3339), clip(op.Reason))
		}
	}
	return err
}
