package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// createTimeout is the maximum duration of CreateTable.
const createTimeout = 5 * time.Minute

// CreateTable creates a table for a store with the same options, and waits until the table is
// active. It is for tests and local use. For a deployment, define the table in a template. The
// table has on-demand capacity and TTL, and the index Options.LeaseIndex if the option is set.
//
// If the table exists already, CreateTable only enables TTL. In both cases, CreateTable then checks
// the table's settings. If it finds problems or warnings, it returns them as [TableProblems].
//
// CreateTable needs the permissions dynamodb:CreateTable, DescribeTable, DescribeTimeToLive and
// UpdateTimeToLive. It gives up after 5 minutes. Like [New], it panics if client is nil, or if the
// table's name or an option is invalid.
func CreateTable(ctx context.Context, client *dynamodb.Client, table string, optFns ...func(*Options)) error {
	if client == nil {
		panic("dynamostore: CreateTable: client is nil; pass dynamodb.NewFromConfig(cfg)")
	}
	o := resolved("CreateTable", table, optFns)
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()

	input := &dynamodb.CreateTableInput{TableName: aws.String(table), BillingMode: types.BillingModePayPerRequest}
	o.addKey(input)
	o.addLeaseIndex(input)
	_, err := client.CreateTable(ctx, input)
	if exists := (*types.ResourceInUseException)(nil); err != nil && !errors.As(err, &exists) {
		return fmt.Errorf("dynamostore: create table %q: %w", table, err)
	}
	waiter := dynamodb.NewTableExistsWaiter(client, func(w *dynamodb.TableExistsWaiterOptions) {
		w.MinDelay, w.MaxDelay = 100*time.Millisecond, 2*time.Second
	})
	if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(table)}, createTimeout); err != nil {
		return fmt.Errorf("dynamostore: wait for table %q to be ACTIVE: %w", table, err)
	}
	if err := enableTTL(ctx, client, table, &o); err != nil {
		return err
	}
	return append(checkShape(ctx, client, table, &o, false), checkLeaseIndex(ctx, client, table, &o)...).err()
}

// addKey adds the table's primary key to the request that creates the table.
func (o *Options) addKey(in *dynamodb.CreateTableInput) {
	add := func(name string, as types.KeyType) {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: types.ScalarAttributeTypeS})
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: aws.String(name), KeyType: as})
	}
	add(o.IDAttribute, types.KeyTypeHash)
	if o.SortKeyAttribute != "" {
		add(o.SortKeyAttribute, types.KeyTypeRange)
	}
}

// enableTTL enables TTL. It does nothing if TTL is already enabled, even on another attribute.
func enableTTL(ctx context.Context, client *dynamodb.Client, table string, o *Options) error {
	ttl, err := client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(table)})
	if err != nil {
		return fmt.Errorf("dynamostore: read the TTL setting of table %q: %w", table, err)
	}
	if d := ttl.TimeToLiveDescription; d != nil && d.TimeToLiveStatus != types.TimeToLiveStatusDisabled {
		return nil // checkShape checks that TTL is on the right attribute
	}
	_, err = client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String(table),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(o.ExpirationAttribute), Enabled: aws.Bool(true)},
	})
	if err == nil {
		return nil
	}
	// UpdateTimeToLive also fails if another process has just enabled TTL. So read the
	// setting once more, and ignore the error if TTL is enabled now.
	ttl, again := client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(table)})
	if again == nil && ttl.TimeToLiveDescription != nil && ttl.TimeToLiveDescription.TimeToLiveStatus != types.TimeToLiveStatusDisabled {
		return nil
	}
	return fmt.Errorf("dynamostore: switch TTL on for table %q: %w", table, err)
}
