package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// leaseCost has the units that one request consumes without and with the index of leases.
type leaseCost struct {
	name      string
	transacts bool
	off, on   units
}

// withIndex sets the option for the index of leases. The number of shards does not affect any
// figure.
func withIndex(o *dynamostore.Options) { o.LeaseIndex = "leases" }

// leaseCosts sends the same requests to a table without the index and to one with the index, and
// returns the units of each.
func (r *rig) leaseCosts(ctx context.Context) ([]leaseCost, error) {
	off, err := r.lives(ctx, func(*dynamostore.Options) {})
	if err != nil {
		return nil, err
	}
	on, err := r.lives(ctx, withIndex)
	for i := range on {
		off[i].on = on[i].off
	}
	return off, err
}

var (
	errDied = errors.New("the process died")
	errBusy = errors.New("try again later")

	errOtherwise = errors.New("not as it had to, for a figure to be one of it")
)

// lives sends requests whose records end in every possible way, and returns the units of each
// request in the field off.
func (r *rig) lives(ctx context.Context, set func(*dynamostore.Options)) ([]leaseCost, error) {
	own := *r
	own.table = "cost-" + rand.Text()
	if err := own.createTable(ctx, own.table, set); err != nil {
		return nil, err
	}
	store := dynamostore.New(own.client, own.table, set, func(o *dynamostore.Options) { o.AttemptTimeout = time.Minute })
	var later time.Duration
	guard := lambdaidem.New(store, func(o *lambdaidem.Options) {
		o.Clock, o.Observer, o.Namespace = func() time.Time { return own.clock().Add(later) }, lambdaidem.Discard, "payments-prod"
	})
	optimistic := guard.With(func(o *lambdaidem.Options) { o.Optimistic = true })

	type handler func(ctx context.Context) error
	well := func(context.Context) error { return nil }
	dies := func(context.Context) error { return lambdaidem.Uncertain(errDied) }
	twoSteps := func(ctx context.Context) error {
		for _, name := range []string{"charge", "mail"} {
			if _, err := lambdaidem.Step(ctx, name, func(context.Context) (string, error) { return "done", nil }); err != nil {
				return err
			}
		}
		return nil
	}
	writes := func(ctx context.Context) error { return enlist(ctx, &own, lambdaidem.RecordID(ctx)) }
	var all []leaseCost
	for _, one := range []struct {
		name   string
		guard  *lambdaidem.Guard
		key    string
		do     handler
		want   error
		passes time.Duration // virtual time to let pass before the request
	}{
		{"new", guard, "a", well, nil, 0},
		{"replay", guard, "a", well, nil, 0},
		{"new, two steps", guard, "b", twoSteps, nil, 0},
		{"new, two enlisted writes", guard, "c", writes, nil, 0},
		{"new, two enlisted writes, optimistic", optimistic, "d", writes, nil, 0},
		{"released", guard, "e", func(context.Context) error { return errBusy }, errBusy, 0},
		{"again after the release", guard, "e", well, nil, 0},
		{"the attempt dies", guard, "f", dies, errDied, 0},
		{"while its lease runs", guard, "f", well, lambdaidem.ErrInProgress, 0},
		{"taken over", guard, "f", well, nil, 5 * time.Minute},
	} {
		later += one.passes
		own.meter.take()
		_, err := lambdaidem.Do(ctx, one.guard, lambdaidem.Call{Operation: "pay", Key: one.key}, func(ctx context.Context) (string, error) {
			return "paid", one.do(ctx)
		})
		if !errors.Is(err, one.want) {
			return nil, fmt.Errorf("%s ended otherwise: %w", one.name, errors.Join(errOtherwise, err))
		}
		all = append(all, leaseCost{name: one.name, transacts: strings.Contains(one.name, "enlisted"), off: own.meter.take()})
	}
	return all, nil
}

// leasesTable returns the page's section on the index of leases.
func leasesTable(all []leaseCost) string {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "`Options.LeaseIndex` is off by default. If it is on, a lock adds an entry to the index and the end of the attempt removes it. "+
		"Each is a write of 1 unit, whatever the size of the record. A takeover moves the entry, which costs 2 units. Nothing else writes to the index: no replay, no conflict, no step, "+
		"and no optimistic handler.\n\nIn a transaction, a write to the index counts double in DynamoDB Local; AWS's documentation does not say. The table's own units are the same with and without the index.\n\n"+
		"| request | the table | the index |\n|---|---|---|\n")
	for _, one := range all {
		table := one.on
		table.index = 0
		_, _ = fmt.Fprintf(&b, "| %s | %s | %s |\n", one.name, cell(table), number(one.on.index))
	}
	_, _ = fmt.Fprintf(&b, "\nA query for dead leases (`Store.DeadLeases`) costs 0.5 R for each shard, which is %s R with the default of %d shards, and 1 R to confirm each dead lease. DynamoDB Local reports nothing for an empty shard.\n",
		number(0.5*defaultShards), defaultShards)
	return b.String()
}

// defaultShards is the default of Options.LeaseShards.
const defaultShards = 64

// entry has all keys of an item's entry in the index of leases. It is the zero entry if the item is
// not in the index.
type entry struct{ id, shard, end string }

// entry returns the index entry of the record that a request writes. It returns the zero entry for
// any other request, and if the meter does not compute the units of the index.
func (m *meter) entry(ctx context.Context, in any) (entry, error) {
	var table *string
	var key map[string]types.AttributeValue
	switch p := in.(type) {
	case *dynamodb.PutItemInput:
		table, key = p.TableName, p.Item
	case *dynamodb.UpdateItemInput:
		table, key = p.TableName, p.Key
	case *dynamodb.TransactWriteItemsInput:
		table, key = target(p.TransactItems[0]) // the first action is that of the record
	}
	if !m.computes || key == nil {
		return entry{}, nil
	}
	found, err := m.items.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: table, ConsistentRead: aws.Bool(true), Key: map[string]types.AttributeValue{"id": key["id"]},
	})
	if err != nil {
		return entry{}, err
	}
	shard, in1 := found.Item["lease_shard"].(*types.AttributeValueMemberS)
	end, in2 := found.Item["in_progress_expiration"].(*types.AttributeValueMemberN)
	id, in3 := key["id"].(*types.AttributeValueMemberS)
	if !in1 || !in2 || !in3 {
		return entry{}, nil
	}
	return entry{id.Value, shard.Value, end.Value}, nil
}

// changed returns the write units that an index with only keys consumes for a change of an item:
// one for an entry that is added, one for an entry that is removed, two for an entry whose key
// changes, and none for an unchanged entry ("Using Global Secondary Indexes in DynamoDB",
// "Provisioned throughput considerations"). Each entry is smaller than 1 KB.
func changed(before, after entry) (units float64) {
	if before == after {
		return 0
	}
	for _, e := range []entry{before, after} {
		if e != (entry{}) {
			units++
		}
	}
	return units
}
