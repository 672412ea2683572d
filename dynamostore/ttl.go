package dynamostore

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"time"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
	"github.com/lambdaidem/toolkit/lambdaidem"
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

// deletionOf returns the value of the TTL attribute, in epoch seconds, for a record that expires at
// the given time. The value is lambdaidem.KeptAfterExpiry (one hour) after the expiry, because a
// delayed request from before the expiry must still find the item. A zero expires means that the
// record never expires: deletionOf then returns the zero integer, which stands for an absent
// attribute.
func deletionOf(expires time.Time) integer {
	if expires.IsZero() {
		return integer{}
	}
	return integer{expires.Add(lambdaidem.KeptAfterExpiry).Unix(), true}
}

// expiryOf returns the time when a record expires. ttl is the record's TTL attribute, which is later
// by lambdaidem.KeptAfterExpiry, one hour. If the attribute is absent, expiryOf returns the zero
// time. It is the inverse of deletionOf.
func expiryOf(ttl integer) time.Time {
	if !ttl.isSet {
		return time.Time{}
	}
	return time.Unix(ttl.n, 0).Add(-lambdaidem.KeptAfterExpiry).UTC()
}
