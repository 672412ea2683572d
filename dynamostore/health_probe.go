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

// action returns a probe that calls send to try one IAM action on the store's own table. A
// good result is cached for the duration cacheFor.
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

// checkStore makes each check whose cached result has expired, and returns the results of
// all checks. If a check fails for a reason that would make every other check fail too,
// checkStore skips the remaining ones. It returns false if ctx ended during a check.
func (c *HealthCheck) checkStore(ctx context.Context) (Health, bool) {
	limited, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	h := Health{Status: HealthPass, Checks: make([]Check, 0, len(c.probes))}
	var down *probe
	for i, p := range c.probes {
		began := wall()
		switch {
		case began.Before(p.expires) && !began.Before(p.last.Time):
		case down != nil:
			p.skip(began, down)
		default:
			check := p.run(limited)
			if ctx.Err() != nil {
				return Health{}, false
			}
			p.keep(check, began)
			if p.failsAll(i == 0) {
				down = p
			}
		}
		h.Checks = append(h.Checks, p.last)
		h.Status = worse(h.Status, p.last.Status)
	}
	h.Until = wall().Add(c.opts.Cache)
	return h, true
}

// skip sets p.last to a result with the status HealthUnknown: the check of p was not made,
// because the earlier probe down failed in a way in which p would fail too.
func (p *probe) skip(now time.Time, down *probe) {
	p.last = Check{Name: p.name, Table: p.table, Time: now, Detail: fmt.Sprintf("not looked at: %s on table %q failed before", down.name, down.table)}
	p.expires = now
}

// failsAll reports whether the latest result of p makes all further checks pointless, because
// they would fail in the same way. There are two such results:
//
//   - DynamoDB did not reply or can't be reached.
//   - The store's own table does not exist or has another key. The first probe finds this. A
//     later probe with such a result may have tested another table, so it does not count.
//
// The parameter first is true if p is the first probe.
func (p *probe) failsAll(first bool) bool {
	code := p.last.Code
	return code == TimedOut || code == Unreachable || first && (code == NoTable || code == WrongKey)
}
