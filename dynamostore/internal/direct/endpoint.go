package direct

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	smithyauth "github.com/aws/smithy-go/auth"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
)

// endpoint is the address that requests are sent to, and the scope of their signatures.
type endpoint struct {
	scheme, host, path string
	headers            http.Header // header fields that the endpoint rules add to each request
	name, region       string      // the service and the Region in the signature
	plain              bool        // whether package sigv4 can sign for it: the path is "/", the host has no default port, and there are no headers
}

// endpointCache caches the endpoint for the account that was used last. Within one store, the
// result of the SDK's endpoint rules depends on the account, and on whether the request is a
// transaction. So there is one endpointCache for transactions and another one for all other
// requests.
type endpointCache struct {
	last atomic.Pointer[accountsEndpoint]
}

type accountsEndpoint struct {
	account  string
	endpoint *endpoint
}

// endpoint returns the endpoint for a request. It caches the result of the SDK's endpoint rules,
// but not that of the user's own resolver. If endpoint returns an error, the SDK's client sends the
// request.
func (t *Transport) endpoint(ctx context.Context, creds *aws.Credentials, r *wire.Request) (*endpoint, error) {
	known := &t.single
	several := r.Operation == wire.TransactWriteItems
	if several {
		known = &t.several
		// Let the SDK's client send a transaction that names a table by its ARN, because the
		// endpoint can depend on the ARN. The cache has only one endpoint for all transactions of
		// an account. If a write names no table, let the SDK's client return its error.
		if slices.ContainsFunc(r.Tables, func(table string) bool { return table == "" || strings.HasPrefix(table, "arn:") }) {
			return nil, errors.New("a table of the transaction is given by its ARN, or by none")
		}
	}
	if !wire.RunsSDKRules(t.options.EndpointResolverV2) {
		return t.resolve(ctx, creds.AccountID, r.Tables, several)
	}
	if last := known.last.Load(); last != nil && last.account == creds.AccountID {
		return last.endpoint, nil
	}
	dest, err := t.resolve(ctx, creds.AccountID, r.Tables, several)
	if err == nil {
		known.last.Store(&accountsEndpoint{creds.AccountID, dest})
	}
	return dest, err
}

func (t *Transport) resolve(ctx context.Context, account string, tables []string, several bool) (*endpoint, error) {
	o := &t.options
	params := dynamodb.EndpointParameters{
		Region:                aws.String(o.Region),
		UseDualStack:          aws.Bool(o.EndpointOptions.UseDualStackEndpoint == aws.DualStackEndpointStateEnabled),
		UseFIPS:               aws.Bool(o.EndpointOptions.UseFIPSEndpoint == aws.FIPSEndpointStateEnabled),
		Endpoint:              o.BaseEndpoint,
		AccountIdEndpointMode: aws.String(string(o.AccountIDEndpointMode)),
	}
	if several {
		params.ResourceArnList = tables
	} else {
		params.ResourceArn = &tables[0]
	}
	if account != "" && o.AccountIDEndpointMode != aws.AccountIDEndpointModeDisabled {
		params.AccountId = &account
	}
	if account == "" && o.AccountIDEndpointMode == aws.AccountIDEndpointModeRequired {
		return nil, errors.New("an account is required, and the credentials name none")
	}
	found, err := o.EndpointResolverV2.ResolveEndpoint(ctx, params)
	if err != nil {
		return nil, fmt.Errorf("resolve the endpoint: %w", err)
	}
	dest := &endpoint{
		scheme: found.URI.Scheme, host: found.URI.Host, path: smithyhttp.JoinPath(found.URI.Path, "/"), headers: found.Headers,
		name: "dynamodb", region: o.Region,
	}
	dest.plain = dest.path == "/" && len(dest.headers) == 0 && !hasDefaultPort(&found.URI)
	schemes, _ := smithyauth.GetAuthOptions(&found.Properties)
	for _, scheme := range schemes {
		if name, ok := smithyhttp.GetSigV4SigningName(&scheme.SignerProperties); ok {
			dest.name = name
		}
		if region, ok := smithyhttp.GetSigV4SigningRegion(&scheme.SignerProperties); ok {
			dest.region = region
		}
	}
	return dest, nil
}

// hasDefaultPort reports whether the URL contains the default port of its scheme. The SDK's
// signer omits such a port from the canonical request.
func hasDefaultPort(u *url.URL) bool {
	return u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80"
}
