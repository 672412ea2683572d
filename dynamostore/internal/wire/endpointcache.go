package wire

import (
	"context"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	smithyendpoints "github.com/aws/smithy-go/endpoints"
)

// cacheEndpoint returns r wrapped in a cache of its last result if r runs the SDK's own endpoint
// rules. These rules return the same result for the same EndpointParameters, which include the
// account and the table. cacheEndpoint returns any other resolver unchanged.
func cacheEndpoint(r dynamodb.EndpointResolverV2) dynamodb.EndpointResolverV2 {
	if reflect.TypeOf(r) != reflect.TypeOf(dynamodb.NewDefaultEndpointResolverV2()) {
		return r
	}
	return &cachingResolver{rules: r}
}

// RunsSDKRules reports whether r runs the SDK's own endpoint rules. Their result depends only on
// the EndpointParameters, so it can be cached.
//
// r must be the EndpointResolverV2 of the client that [Client.SDK] returns. In that client, a
// cachingResolver wraps the SDK's rules, and RunsSDKRules looks for this type.
func RunsSDKRules(r dynamodb.EndpointResolverV2) bool {
	_, ok := r.(*cachingResolver)
	return ok
}

type cachingResolver struct {
	rules dynamodb.EndpointResolverV2
	last  atomic.Pointer[resolvedEndpoint] // the most recent result; nil at first
}

type resolvedEndpoint struct {
	params   dynamodb.EndpointParameters
	endpoint smithyendpoints.Endpoint
}

func (r *cachingResolver) ResolveEndpoint(ctx context.Context, params dynamodb.EndpointParameters) (smithyendpoints.Endpoint, error) {
	if last := r.last.Load(); last != nil && sameParameters(&last.params, &params) {
		return last.endpoint, nil
	}
	endpoint, err := r.rules.ResolveEndpoint(ctx, params)
	if err == nil {
		r.last.Store(&resolvedEndpoint{params, endpoint})
	}
	return endpoint, err
}

func sameParameters(a, b *dynamodb.EndpointParameters) bool {
	return same(a.Region, b.Region) && same(a.UseDualStack, b.UseDualStack) && same(a.UseFIPS, b.UseFIPS) &&
		same(a.Endpoint, b.Endpoint) && same(a.AccountId, b.AccountId) && same(a.AccountIdEndpointMode, b.AccountIdEndpointMode) &&
		same(a.ResourceArn, b.ResourceArn) && slices.Equal(a.ResourceArnList, b.ResourceArnList) &&
		same(a.IsSearchOperation, b.IsSearchOperation)
}
