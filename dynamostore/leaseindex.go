package dynamostore

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// leaseShard returns the shard of the record with the given id: its partition key in the index
// Options.LeaseIndex, or "" if there is no index. The shard depends only on the id, so that every
// attempt and every process writes the record to the same shard.
func (o *Options) leaseShard(id string) string {
	if o.LeaseIndex == "" {
		return ""
	}
	// Hash the id with 32-bit FNV-1a, as in package hash/fnv, so that the shards fill evenly. A
	// store accepts any id, not only those that a guard makes with SHA-256.
	h := uint32(2166136261)
	for i := range len(id) {
		h = (h ^ uint32(id[i])) * 16777619
	}
	return shardName(int(h % uint32(o.LeaseShards))) //nolint:gosec // 1 to maxLeaseShards
}

// shardName returns the value of the index's partition key for shard n.
func shardName(n int) string { return strconv.Itoa(n) }

// addLeaseIndex adds the index Options.LeaseIndex to the request that creates the table. It
// adds nothing if the option is not set.
func (o *Options) addLeaseIndex(in *dynamodb.CreateTableInput) {
	if o.LeaseIndex == "" {
		return
	}
	in.AttributeDefinitions = append(in.AttributeDefinitions,
		types.AttributeDefinition{AttributeName: aws.String(attrLeaseShard), AttributeType: types.ScalarAttributeTypeS},
		types.AttributeDefinition{AttributeName: aws.String(o.InProgressExpirationAttribute), AttributeType: types.ScalarAttributeTypeN})
	in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{{
		IndexName:  aws.String(o.LeaseIndex),
		KeySchema:  o.leaseIndexKey(),
		Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
	}}
}

func (o *Options) leaseIndexKey() []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: aws.String(attrLeaseShard), KeyType: types.KeyTypeHash},
		{AttributeName: aws.String(o.InProgressExpirationAttribute), KeyType: types.KeyTypeRange},
	}
}
