package commands

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// checkFunction adds a finding for each queue whose visibility timeout is too short for the
// function's timeout and the batching window. If the table is local and Lambda is not,
// checkFunction asks nothing, because the function is not deployed to AWS; it then adds one
// finding that says so. database is the endpoint of DynamoDB, or "" for AWS's own. It
// returns an error only if the AWS configuration can't be loaded.
func (o *checkCommand) checkFunction(a *app, ctx context.Context, database string) error { //nolint:revive // the app first, as everywhere here
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
		o.addNotChecked(ctx, "the timeout of function "+o.function+", and its queues", "lambda:GetFunctionConfiguration", err)
		return nil
	}
	timeout := time.Duration(aws.ToInt32(f.Timeout)) * time.Second
	for _, q := range o.feeds(ctx, functions, queues) {
		visible, err := visibilityOf(ctx, queues, q.url)
		if err != nil {
			o.addNotChecked(ctx, "the visibility timeout of queue "+q.url, "sqs:GetQueueAttributes", err)
			continue
		}
		if f := o.checkVisibility(q, visible, timeout); f != nil {
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

// feed is a queue that is an event source of the function.
type feed struct {
	url    string
	window time.Duration // the mapping's MaximumBatchingWindowInSeconds
}

// feeds returns the queues to check: those of --queue, or else all queues that are event
// sources of the function. It also adds a finding for each event source mapping that
// would ignore the failures that the function reports. If the mappings can't be listed,
// feeds adds a finding and assumes batching windows of 0.
func (o *checkCommand) feeds(ctx context.Context, functions *lambda.Client, queues *sqs.Client) []feed {
	windows := map[string]time.Duration{} // batching windows by "account/queue"
	var sources []arn.ARN
	mappings, listed := 0, true
	pages := lambda.NewListEventSourceMappingsPaginator(functions, &lambda.ListEventSourceMappingsInput{FunctionName: aws.String(o.function)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			o.addNotChecked(ctx, "the batching windows of what feeds function "+o.function+", and whether it reports failures", "lambda:ListEventSourceMappings", err)
			listed = false
			break
		}
		mappings += len(page.EventSourceMappings)
		for _, m := range page.EventSourceMappings {
			source, err := arn.Parse(aws.ToString(m.EventSourceArn))
			if err != nil { // a self-managed Kafka cluster, which has no ARN
				source = arn.ARN{Service: "kafka", Resource: strings.Join(m.Topics, ",")}
			}
			o.checkResponseTypes(source, m.FunctionResponseTypes)
			if source.Service != "sqs" {
				continue
			}
			sources = append(sources, source)
			windows[source.AccountID+"/"+source.Resource] = time.Duration(aws.ToInt32(m.MaximumBatchingWindowInSeconds)) * time.Second
		}
	}
	if listed && mappings == 0 {
		o.found = append(o.found, finding{Code: "nothing_feeds", Warning: true, Detail: fmt.Sprintf(
			"Lambda lists no event source mapping for function %s, so nothing that feeds it was checked; if a queue or a stream feeds it, name the version or the alias that it feeds, such as %[1]s:live", o.function)})
	}
	var all []feed
	for _, url := range o.queues {
		parts := strings.Split(url, "/") // a queue's URL ends in account/name
		all = append(all, feed{url, windows[strings.Join(parts[max(0, len(parts)-2):], "/")]})
	}
	if len(o.queues) > 0 {
		return all
	}
	for _, source := range sources {
		out, err := queues.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(source.Resource), QueueOwnerAWSAccountId: aws.String(source.AccountID)})
		if err != nil {
			o.addNotChecked(ctx, "the visibility timeout of queue "+source.Resource, "sqs:GetQueueUrl", err)
			continue
		}
		all = append(all, feed{aws.ToString(out.QueueUrl), windows[source.AccountID+"/"+source.Resource]})
	}
	return all
}

// checkResponseTypes adds a finding if Lambda would ignore the list of failed records
// that the function returns for a batch from this source. types are the
// FunctionResponseTypes of the event source mapping.
func (o *checkCommand) checkResponseTypes(source arn.ARN, types []lambdatypes.FunctionResponseType) {
	switch source.Service {
	case "sqs", "kinesis", "dynamodb", "kafka":
	default:
		return // the guard returns lists of failed records only for these sources
	}
	if o.wholeBatch || slices.Contains(types, lambdatypes.FunctionResponseTypeReportBatchItemFailures) {
		return
	}
	o.found = append(o.found, finding{Code: failuresNotReported, Detail: fmt.Sprintf(
		"the mapping from %s %s to function %s has no ReportBatchItemFailures: Lambda takes an answer that lists failed records for a success, and they are lost; set FunctionResponseTypes, or say --whole-batch if the function fails whole batches",
		source.Service, source.Resource, o.function)})
}
