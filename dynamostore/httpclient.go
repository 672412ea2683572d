package dynamostore

import (
	"net/http"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// idleConnTimeout is how long HTTPClient keeps an idle connection: less than the minute after
// which users have seen DynamoDB close it (aws-sdk-java, issue 1365). The SDK's own client keeps
// idle connections for 90 seconds.
const idleConnTimeout = 50 * time.Second

// HTTPClient returns an HTTP client of the SDK for functions that Lambda freezes between two
// invocations:
//
//	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(dynamostore.HTTPClient()))
//
// A frozen process does not notice that DynamoDB has closed an idle connection, or that a
// network device has forgotten it. The first request after the freeze then fails, or waits for
// Options.AttemptTimeout, before the SDK sends it again over a new connection. The client of
// HTTPClient does not reuse a connection that has been idle for more than 50 seconds by the
// wall clock, which the process reads after the freeze. In all other respects it is the SDK's
// default client.
func HTTPClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.IdleConnTimeout = idleConnTimeout })
}
