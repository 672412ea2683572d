package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
	"github.com/spf13/cobra"

	"github.com/lambdaidem/toolkit/dynamostore"
)

// checkCommand has the flags of the check command, and what it has found so far.
type checkCommand struct {
	enlisted []string
	function string
	queues   []string
	maxSkew  time.Duration
	timeout  time.Duration
	// wholeBatch is true if the function fails a whole batch instead of listing the
	// records that failed.
	wholeBatch bool

	found []finding
}

// finding is one problem that check reports.
type finding struct {
	Code    string `json:"code"`
	Warning bool   `json:"warning"` // the table can be used in spite of the problem
	Detail  string `json:"detail"`
	// NotChecked is true if something could not be checked. If the reason may be a missing
	// permission, Permission is the IAM action that the check needs.
	NotChecked bool   `json:"notChecked"`
	Permission string `json:"permission,omitempty"`
}

// Codes of findings, in addition to those of dynamostore.TableCode.
const (
	visibilityTooShort    = "visibility_too_short"
	visibilityBelowAdvice = "visibility_below_advice"
	failuresNotReported   = "failures_not_reported"
	notChecked            = "not_checked"
)

func newCheck(a *app) *cobra.Command {
	var o checkCommand
	c := &cobra.Command{
		Use:   "check",
		Short: "Check the table, the permissions, the keys, and a function's event sources",
		Long: `Check whether the table can be used: that it exists, its key, its TTL, its indexes, its
Regions, and what these credentials may do with it. check writes nothing.

With --key-file or --kms-key, check also decrypts a sample of the table's records.

With --function, check compares the visibility timeout of each queue that feeds the
function (or of each --queue) with the function's timeout plus the batching window. If
the visibility timeout is too short, SQS delivers a message again while its attempt may
still be running. That delivery finds a live lease, and a receive is wasted. check asks AWS
about a deployed function: the local emulator can't answer.

With --function, check also looks for ReportBatchItemFailures in the function's event
source mappings. Without it, Lambda takes a list of failed records for a success, and
those records are lost. --whole-batch says that the function never returns such a list
(BatchOptions.WholeBatch).

If check can't check something, it reports that too, with the permission that it needs.`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.run(a, c.Context()); err != nil {
				return err
			}
			if a.output == outputJSON {
				if err := printJSON(a.Out, map[string][]finding{"findings": o.found}, true); err != nil {
					return err
				}
			} else {
				printFindings(a, o.found)
			}
			return resultOf(o.found)
		},
	}
	c.Flags().StringArrayVar(&o.enlisted, "enlisted", nil, "a table that handlers enlist writes to; may be repeated")
	c.Flags().StringVar(&o.function, "function", "", "the name or ARN of a function whose queues and streams are checked")
	c.Flags().BoolVar(&o.wholeBatch, "whole-batch", false, "with --function: the function fails whole batches, so its mappings need no ReportBatchItemFailures")
	c.Flags().StringArrayVar(&o.queues, "queue", nil, "with --function: the URL of a queue to check, instead of all queues that feed the function; may be repeated")
	c.Flags().DurationVar(&o.maxSkew, "max-skew", 2*time.Second, "the guard's Options.MaxSkew: a lease ends this long after the function's timeout")
	c.Flags().DurationVar(&o.timeout, "timeout", 15*time.Second, "how long to wait for replies, in total")
	return c
}

func printFindings(a *app, found []finding) {
	if len(found) == 0 {
		say(a.Out, "All is well.\n")
	}
	for _, f := range found {
		how := "WRONG"
		switch {
		case f.NotChecked:
			how = "NOT CHECKED"
		case f.Warning:
			how = "warning"
		}
		say(a.Out, "%s %s: %s\n", how, f.Code, f.Detail)
	}
}

// resultOf returns the error of the check command for its findings. The error decides the
// exit code; it is nil if there are only warnings.
func resultOf(found []finding) error {
	incomplete := false
	for _, f := range found {
		if !f.NotChecked && !f.Warning {
			return codedError{errors.New("something is wrong; see above"), exitFindings}
		}
		incomplete = incomplete || f.NotChecked
	}
	if incomplete {
		return codedError{errors.New("not everything could be checked; see above"), exitIncomplete}
	}
	return nil
}

// run makes all checks and adds the problems to o.found. It returns an error only for a
// wrong command line, a wrong configuration, or an interruption.
func (o *checkCommand) run(a *app, ctx context.Context) error { //nolint:revive // the app first, as everywhere here
	if len(o.queues) > 0 && o.function == "" {
		return usage(errors.New("--queue needs --function: the two are compared"))
	}
	if o.wholeBatch && o.function == "" {
		return usage(errors.New("--whole-batch needs --function: it says how that function answers"))
	}
	if o.timeout <= 0 {
		return usage(fmt.Errorf("--timeout is %v; it must be more than 0", o.timeout))
	}
	s, client, err := a.store(ctx)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	o.found = []finding{}
	if served := o.table(s.CheckTable(limited, o.enlisted...)); served {
		o.table(s.CheckKeys(limited))
	}
	if o.function != "" {
		if err := o.checkFunction(a, limited, aws.ToString(client.Options().BaseEndpoint)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// table adds the problems in err, an error of Store.CheckTable or Store.CheckKeys, to
// o.found. It reports false if the table does not exist or DynamoDB did not reply, so that
// further checks make no sense.
func (o *checkCommand) table(err error) bool {
	if err == nil {
		return true
	}
	problems, ok := errors.AsType[dynamostore.TableProblems](err)
	if !ok {
		o.found = append(o.found, finding{Code: notChecked, NotChecked: true, Detail: err.Error()})
		return false
	}
	serves := true
	for _, p := range problems {
		f := finding{Code: string(p.Code), Warning: p.Warning, Detail: p.Detail}
		switch p.Code { //nolint:exhaustive // the others are findings
		case dynamostore.NoTable:
			serves = false
		case dynamostore.TimedOut, dynamostore.Unreachable:
			serves = false
			f.Detail = fmt.Sprintf("%s; nothing after it was looked at (--timeout %v)", p.Detail, o.timeout)
			f.NotChecked, f.Permission = true, p.Action
		case dynamostore.CheckFailed:
			f.NotChecked, f.Permission = true, p.Action
		case dynamostore.NoPermission: // only check needs these actions, not the functions
			switch p.Action {
			case "dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive", "dynamodb:Scan":
				f.NotChecked, f.Permission = true, p.Action
				f.Detail = fmt.Sprintf("the credentials don't allow %s, which check needs (cause: %v)", p.Action, p.Err)
			}
		}
		o.found = append(o.found, f)
	}
	return serves
}

// addNotChecked adds a finding for something that could not be checked. what describes
// it, and err is the error of the call. The finding names the permission that the call
// needs, unless the service did not reply, because then a permission would not help.
func (o *checkCommand) addNotChecked(ctx context.Context, what, permission string, err error) {
	why := fmt.Sprintf("cause: %v", err)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		why = fmt.Sprintf("no answer within --timeout %v", o.timeout)
	} else if reply, replied := errors.AsType[smithy.APIError](err); replied && reply.ErrorCode() == "UnknownOperationException" {
		o.found = append(o.found, finding{Code: notChecked, NotChecked: true, Detail: fmt.Sprintf(
			"can't read %s: the service at this endpoint has no %s; run check --function with AWS's endpoints after a deployment (%s)", what, permission, why)})
		return
	} else if !replied {
		service, _, _ := strings.Cut(permission, ":")
		o.found = append(o.found, finding{Code: notChecked, NotChecked: true, Detail: fmt.Sprintf(
			"can't read %s: no reply; check the Region, the network and AWS_ENDPOINT_URL_%s (%s)", what, strings.ToUpper(service), why)})
		return
	}
	o.found = append(o.found, finding{Code: notChecked, NotChecked: true, Permission: permission,
		Detail: fmt.Sprintf("can't read %s; that takes the permission %s (%s)", what, permission, why)})
}
