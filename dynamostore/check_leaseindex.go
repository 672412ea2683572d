package dynamostore

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// checkDeadLeases returns the problems that Store.DeadLeases would have with the index, or nil
// if Options.LeaseIndex is not set. It first checks the description of the index. Unless the
// index is missing, has the wrong key or is not active, checkDeadLeases also sends a Query,
// because only a Query shows whether dynamodb:Query is permitted.
func (s *Store) checkDeadLeases(ctx context.Context) TableProblems {
	problems := checkLeaseIndex(ctx, s.wire.SDK(), s.table, &s.opts)
	if s.opts.LeaseIndex == "" || problems.has(NoIndex) || problems.has(WrongIndex) || problems.has(IndexNotActive) {
		return problems
	}
	if _, err := s.wire.SDK().Query(ctx, s.leaseQuery(probeID, 0, 1)); err != nil {
		p := failedCheck(s.wire.SDK(), s.table+"/index/"+s.opts.LeaseIndex, "dynamodb:Query", err)
		p.Warning = p.Code == NoPermission
		problems = append(problems, p)
	}
	return problems
}

// checkLeaseIndex returns the problems of the index: it is missing, or has the wrong key,
// state or projection. It returns nil if Options.LeaseIndex is not set.
func checkLeaseIndex(ctx context.Context, client *dynamodb.Client, table string, o *Options) TableProblems {
	if o.LeaseIndex == "" {
		return nil
	}
	out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(table)})
	if err != nil {
		return TableProblems{failedCheck(client, table, "dynamodb:DescribeTable", err)}
	}
	all := out.Table.GlobalSecondaryIndexes
	i := slices.IndexFunc(all, func(d types.GlobalSecondaryIndexDescription) bool { return aws.ToString(d.IndexName) == o.LeaseIndex })
	if i < 0 {
		return TableProblems{{Code: NoIndex, Detail: fmt.Sprintf(
			"table %q has no index %q, so leases that died are found by nobody; add it (partition key %q of type S, sort key %q of type N, KEYS_ONLY), or leave Options.LeaseIndex empty",
			table, o.LeaseIndex, attrLeaseShard, o.InProgressExpirationAttribute)}}
	}
	return append(checkIndexKey(table, out.Table, &all[i], o), checkIndexState(table, &all[i])...)
}

func checkIndexKey(table string, d *types.TableDescription, index *types.GlobalSecondaryIndexDescription, o *Options) TableProblems {
	same := func(a, b types.KeySchemaElement) bool {
		return aws.ToString(a.AttributeName) == aws.ToString(b.AttributeName) // the partition key comes first in both lists
	}
	if slices.EqualFunc(index.KeySchema, o.leaseIndexKey(), same) && attributeType(d, attrLeaseShard) == types.ScalarAttributeTypeS &&
		attributeType(d, o.InProgressExpirationAttribute) == types.ScalarAttributeTypeN {
		return nil
	}
	is := ""
	for _, k := range index.KeySchema {
		name := aws.ToString(k.AttributeName)
		is += fmt.Sprintf(" %s %s (%s)", k.KeyType, name, attributeType(d, name))
	}
	return TableProblems{{Code: WrongIndex, Detail: fmt.Sprintf(
		"index %q of table %q has the key%s; it must be HASH %s (S) RANGE %s (N): a key can't be changed, so make another index, and where a type is wrong delete this one first: locks may be refused because of it",
		o.LeaseIndex, table, is, attrLeaseShard, o.InProgressExpirationAttribute)}}
}

func checkIndexState(table string, index *types.GlobalSecondaryIndexDescription) (problems TableProblems) {
	name := aws.ToString(index.IndexName)
	switch index.IndexStatus {
	case types.IndexStatusActive, types.IndexStatusUpdating: // the index can be queried in both states
	default:
		problems = append(problems, &TableProblem{Code: IndexNotActive, Detail: fmt.Sprintf(
			"index %q of table %q is %s; wait until it is ACTIVE", name, table, index.IndexStatus)})
	}
	if p := index.Projection; p != nil && p.ProjectionType != types.ProjectionTypeKeysOnly {
		problems = append(problems, &TableProblem{Code: WideIndex, Warning: true, Detail: fmt.Sprintf(
			"index %q of table %q projects %s; nothing but keys is read from it, and steps and large records cost more with each write; KEYS_ONLY is enough", name, table, p.ProjectionType)})
	}
	return problems
}
