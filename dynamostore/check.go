package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// TableCode names what is wrong with a table.
type TableCode string

// What can be wrong with a table.
const (
	NoTable           TableCode = "no_table"            // there is none of that name, in this account and Region
	TableNotActive    TableCode = "table_not_active"    // it is being created or deleted, or is archived
	WrongKey          TableCode = "wrong_key"           // its key is not one string attribute of the right name
	TTLOff            TableCode = "ttl_off"             // records would stay for ever
	TTLWrongAttribute TableCode = "ttl_wrong_attribute" // TTL looks at another attribute
	NoPermission      TableCode = "no_permission"       // the credentials don't allow an action
	NoIndex           TableCode = "no_index"            // there is no Options.LeaseIndex
	IndexNotActive    TableCode = "index_not_active"    // it is being made or deleted
	WrongIndex        TableCode = "wrong_index"         // its key is not the one that the store writes
	WideIndex         TableCode = "wide_index"          // it has more than keys, which costs more
	IndexConflict     TableCode = "index_conflict"      // an index can't take the records, so DynamoDB refuses to write them
	MultiRegion       TableCode = "multi_region"        // more than one Region can write
	NoTransactions    TableCode = "no_transactions"     // no writes can be enlisted
	CheckFailed       TableCode = "check_failed"        // it could not be found out
)

// TableProblem is one thing that is wrong with a table.
type TableProblem struct {
	Code   TableCode
	Detail string // what is wrong, with what, and what to do
	// Warning marks what a table can be used with, if you know what you do.
	Warning bool
	// Action is the IAM action whose call failed, such as "dynamodb:DescribeTable",
	// where the problem is a failed call.
	Action string
	Err    error // the cause, if it was an error
}

// Error returns the detail.
func (p *TableProblem) Error() string { return p.Detail }

// Unwrap returns the cause.
func (p *TableProblem) Unwrap() error { return p.Err }

// TableProblems is the error of a table with problems: all that were found.
// errors.As finds it, and each *[TableProblem] in it.
type TableProblems []*TableProblem

// Error returns one line for each problem.
func (ps TableProblems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Detail
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the problems.
func (ps TableProblems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errs
}

func (ps TableProblems) err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

// CheckTable looks whether the table can serve the store: that it is there and
// ACTIVE, its key, its TTL, its indexes, its Regions, and that the credentials
// allow GetItem, PutItem and UpdateItem on it. It returns nil or [TableProblems];
// some of them may be mere warnings. Once a call gets no answer, CheckTable makes
// no other: the problem [TimedOut] or [Unreachable] is the last. It is meant for a deployment's smoke test, not for every
// cold start: five round trips. A [HealthCheck] is for probes.
//
// Enlisted are the other tables that handlers enlist writes to, if they do:
// whether these and the store's own have transactions, and which actions on them
// the credentials allow. That takes one round trip more, and five for each table.
//
// With Options.LeaseIndex it looks at the index too, and whether the credentials
// allow Query on it. If they don't, that is a warning: a guard needs no Query,
// [Store.DeadLeases] does. That takes two round trips more.
//
// It writes nothing: its writes stand under a condition that never holds.
// It needs dynamodb:DescribeTable and DescribeTimeToLive on top of what the
// store needs.
func (s *Store) CheckTable(ctx context.Context, enlisted ...string) error {
	problems := checkShape(ctx, s.wire.SDK(), s.table, &s.opts, len(enlisted) > 0)
	if !problems.has(NoTable) && !problems.silent() {
		problems = append(problems, s.checkPermissions(ctx)...)
	}
	if len(enlisted) > 0 && !problems.has(NoTable) && !problems.has(NoTransactions) && !problems.has(NoPermission) && !problems.silent() {
		problems = append(problems, s.checkRecordsTransact(ctx)...)
	}
	for _, table := range enlisted {
		if !problems.silent() {
			problems = append(problems, s.checkEnlisted(ctx, table)...)
		}
	}
	if !problems.has(NoTable) && !problems.silent() {
		problems = append(problems, s.checkDeadLeases(ctx)...)
	}
	return problems.err()
}

func (ps TableProblems) has(code TableCode) bool {
	return slices.ContainsFunc(ps, func(p *TableProblem) bool { return p.Code == code })
}

// silent reports whether a call got no answer: every other call would wait as long.
func (ps TableProblems) silent() bool { return ps.has(TimedOut) || ps.has(Unreachable) }

// checkShape finds what is wrong with the table itself. transacts is true if
// handlers enlist writes.
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

// failedCheck returns the problem that the error of an action shows.
func failedCheck(client *dynamodb.Client, table, action string, err error) *TableProblem {
	p := &TableProblem{Code: CheckFailed, Action: action, Err: err}
	switch reasonOf(err) {
	case lambdaidem.ReasonNoTable:
		p.Code = NoTable
		p.Detail = fmt.Sprintf("table %q does not exist in Region %s of this account; create it, or correct the name, the Region or the credentials",
			table, client.Options().Region)
	case lambdaidem.ReasonPermission:
		p.Code = NoPermission
		p.Detail = fmt.Sprintf("the credentials don't allow %s on table %q; add it to the function's policy (cause: %v)", action, table, err)
	case lambdaidem.ReasonTimeout:
		p.Code = TimedOut
		p.Detail = fmt.Sprintf("%s on table %q got no answer in time; look at the network, and at the AWS Health Dashboard (cause: %v)", action, table, err)
	case lambdaidem.ReasonUnreachable:
		p.Code = Unreachable
		p.Detail = fmt.Sprintf("%s on table %q found no connection; look at the Region, the endpoint and the network (cause: %v)", action, table, err)
	default:
		p.Detail = fmt.Sprintf("%s on table %q failed: %v", action, table, err)
	}
	return p
}

func checkStatus(table string, d *types.TableDescription) TableProblems {
	switch d.TableStatus {
	case types.TableStatusActive, types.TableStatusUpdating: // both serve
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
	for _, k := range d.KeySchema {
		name := aws.ToString(k.AttributeName)
		switch {
		case k.KeyType == types.KeyTypeRange:
			wrong("has the sort key %q; a key can't be changed, so make another table with the partition key %q alone", name, o.IDAttribute)
		case name != o.IDAttribute:
			wrong("has the partition key %q, not %q; set Options.IDAttribute to %q, or make another table", name, o.IDAttribute, name)
		default:
			if t := attributeType(d, name); t != types.ScalarAttributeTypeS {
				wrong("has a partition key %q of type %s, not S (string); a key can't be changed, so make another table", name, t)
			}
		}
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
		return nil // there is no TTL on such a table; checkRegions says so
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

// checkIndexes finds the global secondary indexes whose keys are attributes of
// records with another type, or with values that can't be in an index (empty ones):
// DynamoDB refuses every write of such an item with a ValidationException.
// Attributes that records don't have are no matter: the index leaves records out.
// Options.LeaseIndex has a check of its own.
func checkIndexes(table string, d *types.TableDescription, o *Options) TableProblems {
	var problems TableProblems
	columns := o.layout()
	for _, index := range d.GlobalSecondaryIndexes {
		if o.LeaseIndex != "" && aws.ToString(index.IndexName) == o.LeaseIndex {
			continue
		}
		for _, k := range index.KeySchema {
			name := aws.ToString(k.AttributeName)
			is := attributeType(d, name)
			if writes, conflict := columns.conflict(name, is); conflict {
				problems = append(problems, &TableProblem{Code: IndexConflict, Detail: fmt.Sprintf(
					"index %q of table %q has the %s key %q of type %s, and records have an attribute of that name with values of type %s: "+
						"DynamoDB refuses to write them; delete the index, or key it on an attribute that no record has",
					aws.ToString(index.IndexName), table, k.KeyType, name, is, writes)})
			}
		}
	}
	return problems
}

// conflict reports whether the store writes values to the attribute that an index
// with a key of that type can't take, and which types these have.
func (l *layout) conflict(name string, key types.ScalarAttributeType) (writes kinds, conflict bool) {
	if name == attrPart { // a map, in the parts of answers
		return kindMap, true
	}
	for i := range itemAttributes {
		if l[i].name == name {
			writes = itemAttributes[i].kinds
			return writes, writes != kinds(key)
		}
	}
	return "", false
}

// checkRegions warns of tables that more than one Region can write.
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

// probeID is the key of an item that is never there: no hash is spelled so.
const probeID = "lambdaidem#table-check"

// checkPermissions tries every action of the store.
func (s *Store) checkPermissions(ctx context.Context) TableProblems {
	var problems TableProblems
	tried := func(action string, err error) {
		refused := (*types.ConditionalCheckFailedException)(nil)
		// A table with another key refuses the probes as invalid, once it has
		// let them in.
		if err == nil || errors.As(err, &refused) || reasonOf(err) == lambdaidem.ReasonInvalid {
			return
		}
		problems = append(problems, failedCheck(s.wire.SDK(), s.table, action, err))
	}
	_, err := s.wire.SDK().GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(s.table), Key: s.key(probeID), ConsistentRead: aws.Bool(true),
	})
	tried("dynamodb:GetItem", err)
	if problems.silent() {
		return problems
	}
	_, err = s.wire.SDK().PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String(s.table), Item: s.key(probeID),
		ConditionExpression: aws.String(s.writes.probe.condition), ExpressionAttributeNames: s.writes.probe.names,
	})
	tried("dynamodb:PutItem", err)
	if problems.silent() {
		return problems
	}
	_, err = s.wire.SDK().UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String(s.table), Key: s.key(probeID),
		ConditionExpression: aws.String(s.writes.probe.condition), ExpressionAttributeNames: s.writes.probe.names,
	})
	tried("dynamodb:UpdateItem", err)
	return problems
}
