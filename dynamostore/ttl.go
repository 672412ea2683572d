package dynamostore

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
)

// opTTLEnabled is the value of StoreError.Op in errors from TTLEnabled.
const opTTLEnabled = "ttl_enabled"

// TTLEnabled reports whether DynamoDB deletes expired items of the table: TTL is enabled, or
// is being enabled, on the attribute Options.ExpirationAttribute. Without TTL, records and
// stored answers stay for ever.
//
// TTLEnabled is one request, which needs dynamodb:DescribeTimeToLive. Errors are
// *[lambdaidem.StoreError]. For a check of all settings, see [Store.CheckTable].
func (s *Store) TTLEnabled(ctx context.Context) (bool, error) {
	var out *dynamodb.DescribeTimeToLiveOutput
	_, err := wire.Watch(ctx, func(ctx context.Context) (err error) {
		out, err = s.wire.SDK().DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(s.table)})
		return err
	})
	if err != nil {
		return false, failed(opTTLEnabled, wire.NotApplied, err)
	}
	ttl := out.TimeToLiveDescription
	if ttl == nil || aws.ToString(ttl.AttributeName) != s.opts.ExpirationAttribute {
		return false, nil
	}
	return ttl.TimeToLiveStatus == types.TimeToLiveStatusEnabled || ttl.TimeToLiveStatus == types.TimeToLiveStatusEnabling, nil
}
