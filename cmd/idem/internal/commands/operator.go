package commands

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// decisionFlags has the flags that release and settle have in common.
type decisionFlags struct {
	who      identity
	token    string
	ttl      time.Duration
	maxSkew  time.Duration
	force    bool
	again    bool // --again, which only settle has
	released bool // --released, which only settle has: a released record may be settled too
	operatorFlags
	confirmation

	// check returns an error if the command can't change the record. It is called before
	// the operator is asked to confirm. If it is nil, there is no such check.
	check func(dynamostore.Inspected) error
}

// operatorFlags has the values of --by and --reason: who changes the record, and why.
type operatorFlags struct{ by, reason string }

// operatorVariable is the environment variable for the default of --by.
const operatorVariable = "IDEM_OPERATOR"

func (s *operatorFlags) flags(f *pflag.FlagSet) {
	f.StringVar(&s.by, "by", operatorName(), "your name, which the record keeps; default: $"+operatorVariable+", or the user's name")
	f.StringVar(&s.reason, "reason", "", "why you do it, such as a ticket; the record keeps it (required)")
	f.Lookup("by").DefValue = ""
}

func operatorName() string {
	if name := os.Getenv(operatorVariable); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

func (d *decisionFlags) flags(f *pflag.FlagSet) {
	d.who.flags(f)
	d.operatorFlags.flags(f)
	d.confirmation.flags(f)
	f.StringVar(&d.token, "token", "", "the token that show printed; if the record has another token by now, nothing is changed")
	ttlFlag(f, &d.ttl)
	maxSkewFlag(f, &d.maxSkew)
	f.BoolVar(&d.force, "force", false, "also change a record whose lease is live: its attempt may still be running, and have its effects after those of a retry")
}

func (s *operatorFlags) operator(store *dynamostore.Store, optFns ...func(*dynamostore.OperatorOptions)) (*dynamostore.Operator, error) {
	if s.reason == "" {
		return nil, usage(errors.New("why? Use --reason; the record keeps it"))
	}
	o, err := store.Operator(s.by, s.reason, optFns...)
	return o, usage(err)
}

// ttlFlag defines the flag --ttl of a command that ends attempts.
func ttlFlag(f *pflag.FlagSet, ttl *time.Duration) {
	f.DurationVar(ttl, "ttl", 24*time.Hour, "how long the record lasts from now on; use the guard's Options.TTL")
}

// maxSkewFlag defines the flag --max-skew of a command that acts as an operator.
func maxSkewFlag(f *pflag.FlagSet, maxSkew *time.Duration) {
	f.DurationVar(maxSkew, "max-skew", 2*time.Second, "the maximum difference between clocks; at least the guard's Options.MaxSkew")
}

// maxSkewOption returns the OperatorOptions.MaxSkew for a value of --max-skew. A MaxSkew
// of 0 selects the default of 2 s, so 1 ns stands for a --max-skew of 0.
func maxSkewOption(maxSkew time.Duration) time.Duration { return max(maxSkew, 1) }

// options sets the options of the Operator from the flags.
func (d *decisionFlags) options(o *dynamostore.OperatorOptions) {
	o.TTL, o.Force, o.Again, o.MaxSkew = d.ttl, d.force, d.again, maxSkewOption(d.maxSkew)
}

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
	seen, err := a.find(c, s, &d.who, args)
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
  any      --no-answer: the operation is done, and retries get "answer unavailable"

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
