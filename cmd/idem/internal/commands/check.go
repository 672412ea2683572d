package commands

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/spf13/cobra"

	"github.com/lambdaidem/toolkit/dynamostore"
)

// checking is what is checked.
type checking struct {
	enlisted []string
	function string
	queues   []string
	maxSkew  time.Duration
	timeout  time.Duration
	// wholeBatch says that the function fails a batch as a whole instead of listing
	// the records that failed.
	wholeBatch bool

	found []finding
}

// finding is one thing that check says.
type finding struct {
	Code    string `json:"code"`
	Warning bool   `json:"warning"` // it can be lived with, if you know what you do
	Detail  string `json:"detail"`
	// NotChecked marks what could not be looked at. Permission is the IAM action that
	// looking takes.
	NotChecked bool   `json:"notChecked"`
	Permission string `json:"permission,omitempty"`
}

// What check finds beyond the table.
const (
	visibilityTooShort    = "visibility_too_short"
	visibilityBelowAdvice = "visibility_below_advice"
	failuresNotReported   = "failures_not_reported"
	notChecked            = "not_checked"
)

func newCheck(a *app) *cobra.Command {
	var o checking
	c := &cobra.Command{
		Use:   "check",
		Short: "Check the table, the permissions, the keys, and what feeds a function",
		Long: `Check that the table can serve: that it is there, its key, its TTL, its indexes, its
Regions, and what these credentials may do with it. It writes nothing.

With --key-file or --kms-key it decrypts a sample of what the table's records have.

With --function it compares the visibility timeouts of the queues that feed the
function (or of --queue) with the function's timeout and the batching window: a
message that comes back while its attempt may still be running finds the lease, and
burns a receive. It also looks for ReportBatchItemFailures in the function's event
source mappings: without it Lambda takes a list of failed records for a success, and
they are lost. --whole-batch says that the function lists none (BatchOptions.WholeBatch).
It asks AWS about a deployed function: the local emulator can't answer.

What can't be looked at is reported with the permission that it takes, after all
that was found.`,
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
			return verdictOn(o.found)
		},
	}
	c.Flags().StringArrayVar(&o.enlisted, "enlisted", nil, "a table that handlers enlist writes to; may be repeated")
	c.Flags().StringVar(&o.function, "function", "", "a function's name or ARN, whose queues and streams are checked")
	c.Flags().BoolVar(&o.wholeBatch, "whole-batch", false, "with --function: its mappings need no ReportBatchItemFailures, because it fails whole batches")
	c.Flags().StringArrayVar(&o.queues, "queue", nil, "with --function: a queue's URL, instead of those that feed the function; may be repeated")
	c.Flags().DurationVar(&o.maxSkew, "max-skew", 2*time.Second, "the guard's Options.MaxSkew, which a lease lasts beyond the timeout")
	c.Flags().DurationVar(&o.timeout, "timeout", 15*time.Second, "how long to wait for answers, in total")
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

// verdictOn returns the error with which check exits.
func verdictOn(found []finding) error {
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

// run looks at everything and keeps what it finds in o.found. Its error is a mistake
// in the command line or the configuration, or an interruption.
func (o *checking) run(a *app, ctx context.Context) error { //nolint:revive // the app first, as everywhere here
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

// table keeps the problems of a table. It reports whether the table is there and
// answers.
func (o *checking) table(err error) bool {
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
		case dynamostore.NoPermission: // these are for check alone: functions do without
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

// missed adds a finding that something could not be looked at. The finding names the
// permission unless the service sent no reply, which no permission would mend.
func (o *checking) missed(ctx context.Context, what, permission string, err error) {
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

// feed is a queue that feeds a function.
type feed struct {
	url    string
	window time.Duration // MaximumBatchingWindowInSeconds
}

// checkFunction compares the visibility timeouts of the function's queues with its
// timeout and the batching windows. It asks nothing if the table is local and Lambda
// is not: the function is then not AWS's. It returns an error if there is no
// configuration.
func (o *checking) checkFunction(a *app, ctx context.Context, database string) error { //nolint:revive // the app first, as everywhere here
	cfg, err := a.awsConfig(ctx)
	if err != nil {
		return err
	}
	functions, queues := lambda.NewFromConfig(cfg), sqs.NewFromConfig(cfg)
	if isLocal(database) && functions.Options().BaseEndpoint == nil {
		o.found = append(o.found, finding{Code: notChecked, NotChecked: true, Detail: fmt.Sprintf(
			"function %s: the table is at %s, and --function asks AWS for a deployed function; run it with AWS's endpoints after a deployment (up warns of missing ReportBatchItemFailures on this machine)",
			o.function, database)})
		return nil
	}
	f, err := functions.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: aws.String(o.function)})
	if err != nil {
		o.missed(ctx, "the timeout of function "+o.function+", and its queues", "lambda:GetFunctionConfiguration", err)
		return nil
	}
	timeout := time.Duration(aws.ToInt32(f.Timeout)) * time.Second
	for _, q := range o.feeds(ctx, functions, queues) {
		visible, err := visibilityOf(ctx, queues, q.url)
		if err != nil {
			o.missed(ctx, "the visibility timeout of queue "+q.url, "sqs:GetQueueAttributes", err)
			continue
		}
		if f := o.visibility(q, visible, timeout); f != nil {
			o.found = append(o.found, *f)
		}
	}
	return nil
}

// isLocal reports whether an endpoint is on this machine. The endpoint of AWS is "".
func isLocal(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

// visibilityOf asks for a queue's visibility timeout.
func visibilityOf(ctx context.Context, queues *sqs.Client, url string) (time.Duration, error) {
	out, err := queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: aws.String(url), AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameVisibilityTimeout},
	})
	if err != nil {
		return 0, err
	}
	seconds, err := strconv.Atoi(out.Attributes[string(sqstypes.QueueAttributeNameVisibilityTimeout)])
	return time.Duration(seconds) * time.Second, err
}

// feeds returns the queues to check: those of --queue, or all that feed the
// function. It also adds a finding for each mapping that loses failures. Where the
// event source mappings can't be listed, the batching windows count as 0, and o.found
// says so.
func (o *checking) feeds(ctx context.Context, functions *lambda.Client, queues *sqs.Client) []feed {
	windows := map[string]time.Duration{} // by account and queue
	var sources []arn.ARN
	pages := lambda.NewListEventSourceMappingsPaginator(functions, &lambda.ListEventSourceMappingsInput{FunctionName: aws.String(o.function)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			o.missed(ctx, "the batching windows of what feeds function "+o.function+", and whether it reports failures", "lambda:ListEventSourceMappings", err)
			break
		}
		for _, m := range page.EventSourceMappings {
			source, err := arn.Parse(aws.ToString(m.EventSourceArn))
			if err != nil {
				continue // a self-managed source, which isn't a queue or a stream
			}
			o.reporting(source, m.FunctionResponseTypes)
			if source.Service != "sqs" {
				continue
			}
			sources = append(sources, source)
			windows[source.AccountID+"/"+source.Resource] = time.Duration(aws.ToInt32(m.MaximumBatchingWindowInSeconds)) * time.Second
		}
	}
	var all []feed
	for _, url := range o.queues {
		parts := strings.Split(url, "/") // it ends in account and name
		all = append(all, feed{url, windows[strings.Join(parts[max(0, len(parts)-2):], "/")]})
	}
	if len(o.queues) > 0 {
		return all
	}
	for _, source := range sources {
		out, err := queues.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(source.Resource), QueueOwnerAWSAccountId: aws.String(source.AccountID)})
		if err != nil {
			o.missed(ctx, "the visibility timeout of queue "+source.Resource, "sqs:GetQueueUrl", err)
			continue
		}
		all = append(all, feed{aws.ToString(out.QueueUrl), windows[source.AccountID+"/"+source.Resource]})
	}
	return all
}

// reporting adds a finding if Lambda would ignore the failures that the function reports
// of a source's batches.
func (o *checking) reporting(source arn.ARN, types []lambdatypes.FunctionResponseType) {
	switch source.Service {
	case "sqs", "kinesis", "dynamodb":
	default:
		return // other sources have no partial batches that the guard answers
	}
	if o.wholeBatch || slices.Contains(types, lambdatypes.FunctionResponseTypeReportBatchItemFailures) {
		return
	}
	o.found = append(o.found, finding{Code: failuresNotReported, Detail: fmt.Sprintf(
		"the mapping from %s %s to function %s has no ReportBatchItemFailures: Lambda takes an answer that lists failed records for a success, and they are lost; set FunctionResponseTypes, or say --whole-batch if the function fails whole batches",
		source.Service, source.Resource, o.function)})
}

// visibility compares a queue's visibility timeout with a function's timeout; nil:
// it is long enough. Messages are in flight while Lambda waits for a batch to fill,
// and a lease ends MaxSkew after the function's deadline. AWS advises six times the
// timeout and the batching window, for the retries of batches that are throttled
// (AWS Lambda, "Using Lambda with Amazon SQS").
func (o *checking) visibility(q feed, visible, timeout time.Duration) *finding {
	name := q.url[strings.LastIndex(q.url, "/")+1:]
	advised := 6*timeout + q.window
	waits := ""
	if q.window > 0 {
		waits = fmt.Sprintf(" after a batching window of %v", q.window)
	}
	switch least := q.window + timeout + o.maxSkew; {
	case visible < least:
		return &finding{Code: visibilityTooShort, Detail: fmt.Sprintf(
			"queue %s has a visibility timeout of %v, and function %s may run for %v%s: a message comes back while its attempt's lease is live, and burns a receive; make it at least %v, or %v as AWS advises",
			name, visible, o.function, timeout, waits, least, advised)}
	case visible < advised:
		return &finding{Code: visibilityBelowAdvice, Warning: true, Detail: fmt.Sprintf(
			"queue %s has a visibility timeout of %v; AWS advises six times the timeout of function %s and the batching window, %v", name, visible, o.function, advised)}
	}
	return nil
}
