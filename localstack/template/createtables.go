package template

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// TableAPI is the part of *dynamodb.Client that CreateTables uses.
type TableAPI interface {
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
	UpdateTimeToLive(context.Context, *dynamodb.UpdateTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error)
}

// activeWithin is the maximum time for a new table to become active.
const activeWithin = time.Minute

// CreateTables creates the tables in on-demand mode, with their TTL, streams and indexes, and
// returns when all of them are active. It may be called again: an existing table is left as it
// is. CreateTables returns an error if an existing table has another key, stream or TTL
// attribute, or lacks an index.
func CreateTables(ctx context.Context, api TableAPI, tables []Table) error {
	for _, t := range tables {
		if err := createTable(ctx, api, t); err != nil {
			return fmt.Errorf("table %s (%s): %w", t.Name, t.LogicalID, err)
		}
	}
	return nil
}

func createTable(ctx context.Context, api TableAPI, t Table) error {
	input := &dynamodb.CreateTableInput{
		TableName:   aws.String(t.Name),
		BillingMode: types.BillingModePayPerRequest,
		KeySchema:   keySchema(t.Key),
	}
	for _, a := range t.Attributes {
		input.AttributeDefinitions = append(input.AttributeDefinitions, types.AttributeDefinition{
			AttributeName: aws.String(a.Name), AttributeType: types.ScalarAttributeType(a.Type),
		})
	}
	for _, index := range t.Indexes {
		input.GlobalSecondaryIndexes = append(input.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: aws.String(index.Name),
			KeySchema: keySchema(index.Key),
			Projection: &types.Projection{
				ProjectionType: types.ProjectionType(index.Projection), NonKeyAttributes: index.NonKey,
			},
		})
	}
	if t.Stream != "" {
		input.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewType(t.Stream)}
	}
	_, err := api.CreateTable(ctx, input)
	if exists := (*types.ResourceInUseException)(nil); err != nil && !errors.As(err, &exists) {
		return fmt.Errorf("creating it: %w", err)
	}
	waiter := dynamodb.NewTableExistsWaiter(api, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 50*time.Millisecond, time.Second
	})
	found, err := waiter.WaitForOutput(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(t.Name)}, activeWithin)
	if err != nil {
		return fmt.Errorf("waiting until it is active: %w", err)
	}
	if is := keyParts(found.Table.KeySchema); !slices.Equal(is, t.Key) {
		return fmt.Errorf("it exists with the key %v, the template says %v; delete it or name another table", is, t.Key)
	}
	if is := streamOf(found.Table); is != t.Stream {
		return fmt.Errorf("it exists with the stream %q, the template says %q; delete it or name another table", is, t.Stream)
	}
	for _, index := range t.Indexes {
		if !hasIndex(found.Table, index) {
			return fmt.Errorf("it exists without the index %s with the key %v; delete it or name another table", index.Name, index.Key)
		}
	}
	return setTTL(ctx, api, t)
}

func hasIndex(t *types.TableDescription, want Index) bool {
	return slices.ContainsFunc(t.GlobalSecondaryIndexes, func(is types.GlobalSecondaryIndexDescription) bool {
		return aws.ToString(is.IndexName) == want.Name && slices.Equal(keyParts(is.KeySchema), want.Key)
	})
}

// streamOf returns the view type of a table's stream, or "" if the table has no stream.
func streamOf(t *types.TableDescription) string {
	if t.StreamSpecification == nil || !aws.ToBool(t.StreamSpecification.StreamEnabled) {
		return ""
	}
	return string(t.StreamSpecification.StreamViewType)
}

func setTTL(ctx context.Context, api TableAPI, t Table) error {
	if t.TTLAttribute == "" {
		return nil
	}
	// DynamoDB refuses an UpdateTimeToLive that changes nothing with a
	// ValidationException, so send one only if TTL is off.
	found, err := api.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(t.Name)})
	if err != nil {
		return fmt.Errorf("reading its TTL: %w", err)
	}
	if ttl := found.TimeToLiveDescription; ttl != nil {
		switch ttl.TimeToLiveStatus {
		case types.TimeToLiveStatusEnabled, types.TimeToLiveStatusEnabling:
			if is := aws.ToString(ttl.AttributeName); is != t.TTLAttribute {
				return fmt.Errorf("its TTL is on the attribute %s, the template says %s; turn it off or delete the table", is, t.TTLAttribute)
			}
			return nil
		}
	}
	_, err = api.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: aws.String(t.Name),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{
			AttributeName: aws.String(t.TTLAttribute), Enabled: aws.Bool(true),
		},
	})
	if err != nil {
		return fmt.Errorf("turning TTL on for the attribute %s: %w", t.TTLAttribute, err)
	}
	return nil
}

func keySchema(key []KeyPart) []types.KeySchemaElement {
	out := make([]types.KeySchemaElement, 0, len(key))
	for _, part := range key {
		out = append(out, types.KeySchemaElement{
			AttributeName: aws.String(part.Name), KeyType: types.KeyType(part.Type),
		})
	}
	return out
}

func keyParts(schema []types.KeySchemaElement) []KeyPart {
	out := make([]KeyPart, 0, len(schema))
	for _, element := range schema {
		out = append(out, KeyPart{aws.ToString(element.AttributeName), string(element.KeyType)})
	}
	return out
}
