package commands

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/spf13/cobra"

	"github.com/lambdaidem/toolkit/dynamostore"
)

// checking is what is checked.
type checking struct {
	enlisted []string
	function string
	queues   []string
	maxSkew  time.Duration
}

// finding is one thing that check says.
type finding struct {
	Code    string `json:"code"`
	Warning bool   `json:"warning"` // it can be lived with, if you know what you do
	Detail  string `json:"detail"`
}

// What check finds beyond the table.
const (
	visibilityTooShort    = "visibility_too_short"
	visibilityBelowAdvice = "visibility_below_advice"
)

func newCheck(a *app) *cobra.Command {
	var o checking
	c := &cobra.Command{
		Use:   "check",
		Short: "Check the table, the permissions, and a queue's visibility timeout against its function's",
		Long: `Check that the table can serve: that it is there, its key, its TTL, its Regions, and
what these credentials may do with it. It writes nothing.

With --function, the visibility timeouts of the queues that feed it (or of --queue)
are held against the function's timeout: a message that comes back while its attempt
may still be running finds the lease, and burns a receive.`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			found, err := o.run(a, c.Context())
			if err != nil {
				return err
			}
			if a.output == outputJSON {
				err = printJSON(a.Out, map[string][]finding{"findings": found}, true)
			} else {
				printFindings(a, found)
			}
			if err != nil {
				return err
			}
			for _, f := range found {
				if !f.Warning {
					return codedError{errors.New("something is wrong; see above"), exitFindings}
				}
			}
			return nil
		},
	}
	c.Flags().StringArrayVar(&o.enlisted, "enlisted", nil, "a table that handlers enlist writes to; may be repeated")
	c.Flags().StringVar(&o.function, "function", "", "a function's name or ARN, whose queues are checked")
	c.Flags().StringArrayVar(&o.queues, "queue", nil, "with --function: a queue's URL, instead of those that feed the function; may be repeated")
	c.Flags().DurationVar(&o.maxSkew, "max-skew", 2*time.Second, "the guard's Options.MaxSkew, which a lease lasts beyond the timeout")
	return c
}

func printFindings(a *app, found []finding) {
	if len(found) == 0 {
		say(a.Out, "All is well.\n")
	}
	for _, f := range found {
		how := "WRONG"
		if f.Warning {
			how = "warning"
		}
		say(a.Out, "%s %s: %s\n", how, f.Code, f.Detail)
	}
}

func (o *checking) run(a *app, ctx context.Context) ([]finding, error) { //nolint:revive // the app first, as everywhere here
	if len(o.queues) > 0 && o.function == "" {
		return nil, usage(errors.New("--queue needs --function: the two are held against each other"))
	}
	s, _, err := a.store(ctx)
	if err != nil {
		return nil, err
	}
	found := []finding{}
	err = s.CheckTable(ctx, o.enlisted...)
	problems := dynamostore.TableProblems(nil)
	if err != nil && !errors.As(err, &problems) {
		return nil, fmt.Errorf("check the table: %w", err)
	}
	for _, p := range problems {
		found = append(found, finding{string(p.Code), p.Warning, p.Detail})
	}
	if o.function == "" {
		return found, nil
	}
	more, err := o.checkQueues(a, ctx)
	return append(found, more...), err
}

// checkQueues holds the visibility timeouts of the function's queues against its
// timeout.
func (o *checking) checkQueues(a *app, ctx context.Context) ([]finding, error) { //nolint:revive // the app first, as everywhere here
	cfg, err := a.awsConfig(ctx)
	if err != nil {
		return nil, err
	}
	functions, queues := lambda.NewFromConfig(cfg), sqs.NewFromConfig(cfg)
	f, err := functions.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: aws.String(o.function)})
	if err != nil {
		return nil, fmt.Errorf("read the function's configuration: %w", err)
	}
	timeout := time.Duration(aws.ToInt32(f.Timeout)) * time.Second
	urls := o.queues
	if len(urls) == 0 {
		if urls, err = feeding(ctx, functions, queues, o.function); err != nil {
			return nil, err
		}
	}
	var found []finding
	for _, url := range urls {
		out, err := queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
			QueueUrl: aws.String(url), AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameVisibilityTimeout},
		})
		if err != nil {
			return nil, fmt.Errorf("read the attributes of the queue %s: %w", url, err)
		}
		seconds, err := strconv.Atoi(out.Attributes[string(sqstypes.QueueAttributeNameVisibilityTimeout)])
		if err != nil {
			return nil, fmt.Errorf("the visibility timeout of the queue %s: %w", url, err)
		}
		if f := o.visibility(url, time.Duration(seconds)*time.Second, timeout); f != nil {
			found = append(found, *f)
		}
	}
	return found, nil
}

// feeding is the URLs of the queues that feed a function.
func feeding(ctx context.Context, functions *lambda.Client, queues *sqs.Client, function string) ([]string, error) {
	var urls []string
	pages := lambda.NewListEventSourceMappingsPaginator(functions, &lambda.ListEventSourceMappingsInput{FunctionName: aws.String(function)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list what feeds the function: %w", err)
		}
		for _, m := range page.EventSourceMappings {
			source, err := arn.Parse(aws.ToString(m.EventSourceArn))
			if err != nil || source.Service != "sqs" {
				continue
			}
			out, err := queues.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(source.Resource), QueueOwnerAWSAccountId: aws.String(source.AccountID)})
			if err != nil {
				return nil, fmt.Errorf("find the queue %s: %w", source, err)
			}
			urls = append(urls, aws.ToString(out.QueueUrl))
		}
	}
	return urls, nil
}

// visibility compares a queue's timeout with a function's; nil: it is fine. A lease
// ends MaxSkew after the function's deadline (L5). AWS advises six times the
// timeout, for the retries of batches that are throttled (AWS Lambda, "Using Lambda
// with Amazon SQS").
func (o *checking) visibility(url string, visible, timeout time.Duration) *finding {
	const advised = 6
	name := url[strings.LastIndex(url, "/")+1:]
	switch least := timeout + o.maxSkew; {
	case visible < least:
		return &finding{Code: visibilityTooShort, Detail: fmt.Sprintf(
			"queue %s has a visibility timeout of %v, and function %s may run for %v: a message comes back while its attempt's lease is live, and burns a receive; make it at least %v, or %v as AWS advises",
			name, visible, o.function, timeout, least, advised*timeout)}
	case visible < advised*timeout:
		return &finding{Code: visibilityBelowAdvice, Warning: true, Detail: fmt.Sprintf(
			"queue %s has a visibility timeout of %v; AWS advises six times the timeout of function %s, %v", name, visible, o.function, advised*timeout)}
	}
	return nil
}
