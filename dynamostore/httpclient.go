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

// maxConns is the maximum number of connections that the client of HTTPClient opens to a host.
// The SDK's own client opens up to 2,048 and keeps 10 of them when they are idle.
const maxConns = 100

// HTTPClient returns an HTTP client of the SDK. Use it for functions that Lambda freezes between
// two invocations, and for functions that handle many invocations or messages at a time:
//
//	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(dynamostore.HTTPClient()))
//
// A frozen process does not notice that DynamoDB has closed an idle connection, or that a network
// device has forgotten it. The first request after the freeze then fails, or waits for
// Options.AttemptTimeout, before the SDK sends it again. The client that HTTPClient returns
// therefore does not reuse a connection that has been idle for more than 50 seconds. It measures
// this time by the wall clock, so the duration of a freeze counts.
//
// The client opens at most 100 connections to a host, and keeps them when they are idle. Further
// requests wait for a connection, and Options.AttemptTimeout includes that wait. If DynamoDB
// replies in 10 ms, 100 connections are enough for 10,000 requests a second.
//
// The SDK's default client opens up to 2,048 connections, each with a TLS handshake, if there are
// as many requests at once. It then closes all but 10. A Lambda function may have only 1,024 open
// files (AWS Lambda Developer Guide, "Lambda quotas").
//
// In all other respects the client is like the SDK's default client. To change a setting, use its
// method WithTransportOptions.
func HTTPClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.IdleConnTimeout = idleConnTimeout
		t.MaxConnsPerHost, t.MaxIdleConnsPerHost = maxConns, maxConns
	})
}
