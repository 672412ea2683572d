package dynamostore

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
)

// probe makes one check of a HealthCheck, and caches the result.
type probe struct {
	name, table string                      // Check.Name and Check.Table
	cacheFor    time.Duration               // how long a good result is cached; 0 means not at all
	run         func(context.Context) Check // makes the check
	last        Check                       // the latest result
	expires     time.Time                   // when the latest result expires
}

// allProbes returns the probes of the HealthCheck in the order in which they are made.
// GetItem is first, because it is the cheapest and finds most problems. The check of the
// table's settings is last, because requests can be served even if the settings can't be
// read.
func (c *HealthCheck) allProbes() []*probe {
	s, condition := c.store, &c.store.writes.probe
	all := []*probe{
		c.action("GetItem", 0, func(ctx context.Context) error {
			_, err := c.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(s.table), Key: s.key(probeID)})
			return err
		}),
		c.action("PutItem", c.opts.WritesEvery, func(ctx context.Context) error {
			_, err := c.client.PutItem(ctx, &dynamodb.PutItemInput{
				TableName: aws.String(s.table), Item: s.key(probeID),
				ConditionExpression: aws.String(condition.condition), ExpressionAttributeNames: condition.names,
			})
			return err
		}),
		c.action("UpdateItem", c.opts.WritesEvery, func(ctx context.Context) error {
			_, err := c.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
				TableName: aws.String(s.table), Key: s.key(probeID),
				ConditionExpression: aws.String(condition.condition), ExpressionAttributeNames: condition.names,
			})
			return err
		}),
	}
	for i := range c.opts.Enlisted {
		all = append(all, c.enlistedProbes(&c.opts.Enlisted[i])...)
	}
	if s.keys != nil {
		all = append(all, &probe{name: encryptionCheck, table: s.table, run: c.checkEncryption})
	}
	return append(all, &probe{name: settingsCheck, table: s.table, cacheFor: c.opts.SettingsEvery, run: c.checkSettings})
}

// action returns a probe for one IAM action on the store's own table. The probe calls send, which
// sends a request with that action. A good result is cached for the duration cacheFor.
func (c *HealthCheck) action(name string, cacheFor time.Duration, send func(context.Context) error) *probe {
	table, options := c.store.table, &c.store.opts
	key := fmt.Sprintf("its partition key must be the string attribute %q, without a sort key", options.IDAttribute)
	if options.SortKeyAttribute != "" {
		key = fmt.Sprintf("its key must be the string attributes %q and %q", options.IDAttribute, options.SortKeyAttribute)
	}
	return &probe{name: name, table: table, cacheFor: cacheFor, run: func(ctx context.Context) Check {
		_, err := wire.Watch(ctx, send)
		return c.resultOf(name, table, key+"; CheckTable says what it is", err)
	}}
}
