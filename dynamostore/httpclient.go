package dynamostore

import (
	"net/http"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// idleConnTimeout is how long the client of HTTPClient keeps an idle connection. It is less than
// a minute, because users have seen DynamoDB close connections that were idle for a minute
// (aws-sdk-java, issue 1365). The SDK's own client keeps idle connections for 90 seconds.
const idleConnTimeout = 50 * time.Second

// maxConns is the maximum number of connections, busy or idle, that the client of HTTPClient has to
// a host. If DynamoDB replies in 10 ms, 100 connections are enough for 10,000 requests a second.
// The SDK's own client keeps at most 10 idle connections to a host.
const maxConns = 100

// HTTPClient returns an HTTP client of the SDK. Use it for functions that Lambda freezes between
// two invocations, and for functions that handle many invocations or messages at a time:
//
//	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(dynamostore.HTTPClient()))
//
// The client does not reuse a connection that has been idle for more than 50 seconds by the wall
// clock. DynamoDB or a network device may have dropped such a connection while the process was
// frozen. The first request after the freeze would then fail, or wait for Options.AttemptTimeout,
// before the SDK sends it again.
//
// The client opens at most 100 connections to a host. Further requests wait, and
// Options.AttemptTimeout includes the wait. The SDK's default client opens up to 2,048 connections,
// but a Lambda function may have only 1,024 open files (AWS Lambda Developer Guide, "Lambda
// quotas").
//
// All other settings are those of the SDK's default client. To change a setting, use the method
// WithTransportOptions.
func HTTPClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.IdleConnTimeout = idleConnTimeout
		t.MaxConnsPerHost, t.MaxIdleConnsPerHost = maxConns, maxConns
	})
}
