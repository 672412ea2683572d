package dynamostore

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// checkShape returns the problems with the table's settings, which it reads with
// DescribeTable and DescribeTimeToLive. transacts is true if handlers enlist writes. The
// table must then also support transactions.
func checkShape(ctx context.Context, client *dynamodb.Client, table string, o *Options, transacts bool) TableProblems {
	out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(table)})
	if err != nil {
		return TableProblems{failedCheck(client, table, "dynamodb:DescribeTable", err)}
	}
	d := out.Table
	problems := append(checkStatus(table, d), checkKey(table, d, o)...)
	problems = append(problems, checkIndexes(table, d, o)...)
	problems = append(problems, checkRegions(table, d)...)
	if transacts {
		problems = append(problems, checkTransactions(table, d)...)
	}

	ttl, err := client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(table)})
	if err != nil {
		return append(problems, failedCheck(client, table, "dynamodb:DescribeTimeToLive", err))
	}
	return append(problems, checkTTL(table, d, ttl.TimeToLiveDescription, o)...)
}

func checkStatus(table string, d *types.TableDescription) TableProblems {
	switch d.TableStatus {
	case types.TableStatusActive, types.TableStatusUpdating: // the table can be used in both states
		return nil
	}
	return TableProblems{{Code: TableNotActive, Detail: fmt.Sprintf(
		"table %q is %s; wait until it is ACTIVE", table, d.TableStatus)}}
}

func checkKey(table string, d *types.TableDescription, o *Options) TableProblems {
	var problems TableProblems
	wrong := func(format string, args ...any) {
		problems = append(problems, &TableProblem{Code: WrongKey, Detail: fmt.Sprintf("table %q ", table) + fmt.Sprintf(format, args...)})
	}
	var sortKey string
	for _, k := range d.KeySchema {
		name, role, option, want := aws.ToString(k.AttributeName), "partition key", "IDAttribute", o.IDAttribute
		if k.KeyType == types.KeyTypeRange {
			sortKey = name
			role, option, want = "sort key", "SortKeyAttribute", o.SortKeyAttribute
		}
		t := attributeType(d, name)
		switch {
		case t != types.ScalarAttributeTypeS:
			wrong("has a %s %q of type %s, not S (string); a key can't be changed, so make another table", role, name, t)
		case want == "":
			wrong("has the %s %q; set Options.%s to %q, or make another table", role, name, option, name)
		case name != want:
			wrong("has the %s %q, not %q; set Options.%s to %q, or make another table", role, name, want, option, name)
		}
	}
	if sortKey == "" && o.SortKeyAttribute != "" {
		wrong("has no sort key, and Options.SortKeyAttribute is %q; leave the option empty, or make another table", o.SortKeyAttribute)
	}
	return problems
}

func attributeType(d *types.TableDescription, name string) types.ScalarAttributeType {
	for _, a := range d.AttributeDefinitions {
		if aws.ToString(a.AttributeName) == name {
			return a.AttributeType
		}
	}
	return ""
}

func checkTTL(table string, d *types.TableDescription, ttl *types.TimeToLiveDescription, o *Options) TableProblems {
	if d.MultiRegionConsistency == types.MultiRegionConsistencyStrong {
		return nil // such a table does not support TTL; checkRegions warns about it
	}
	status := types.TimeToLiveStatusDisabled
	if ttl != nil {
		status = ttl.TimeToLiveStatus
	}
	switch status {
	case types.TimeToLiveStatusDisabled, types.TimeToLiveStatusDisabling:
		return TableProblems{{Code: TTLOff, Detail: fmt.Sprintf(
			"table %q has TTL %s, so records stay, and are paid for, for ever; switch TTL on for the attribute %q",
			table, status, o.ExpirationAttribute)}}
	}
	if name := aws.ToString(ttl.AttributeName); name != o.ExpirationAttribute {
		return TableProblems{{Code: TTLWrongAttribute, Detail: fmt.Sprintf(
			"table %q has TTL on the attribute %q, not on %q; set Options.ExpirationAttribute to %q, or move TTL",
			table, name, o.ExpirationAttribute, name)}}
	}
	return nil
}

// checkRegions returns a warning if the table is a global table, which can be written in more than
// one Region. If the table has eventual consistency, two Regions can run requests with the same key
// at once. If it has strong consistency, DynamoDB supports neither TTL nor transactions on the
// table.
func checkRegions(table string, d *types.TableDescription) TableProblems {
	if len(d.Replicas) == 0 {
		return nil
	}
	regions := make([]string, len(d.Replicas))
	for i, r := range d.Replicas {
		regions[i] = aws.ToString(r.RegionName)
	}
	detail := fmt.Sprintf("table %q is a global table (%s) with multi-Region eventual consistency: two Regions can hold the same key at once; "+
		"send all requests that can share a key to one Region", table, strings.Join(regions, ", "))
	if d.MultiRegionConsistency == types.MultiRegionConsistencyStrong {
		detail = fmt.Sprintf("table %q is a global table (%s) with multi-Region strong consistency: records are safe there, "+
			"but it has neither TTL nor transactions, so expired records stay and no writes can be enlisted", table, strings.Join(regions, ", "))
	}
	return TableProblems{{Code: MultiRegion, Warning: true, Detail: detail}}
}

// checkTransactions returns a problem if the table has multi-Region strong consistency,
// because DynamoDB does not support transactions on such a table.
func checkTransactions(table string, d *types.TableDescription) TableProblems {
	if d.MultiRegionConsistency != types.MultiRegionConsistencyStrong {
		return nil
	}
	return TableProblems{{Code: NoTransactions, Detail: fmt.Sprintf(
		"table %q has multi-Region strong consistency, and so no transactions: no write can be enlisted with it; "+
			"use a table of one Region, or one with eventual consistency", table)}}
}
