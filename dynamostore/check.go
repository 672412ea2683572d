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

// TableCode identifies a kind of problem with a table.
type TableCode string

// The kinds of problems that [Store.CheckTable] finds.
const (
	NoTable           TableCode = "no_table"            // the table does not exist in this account and Region
	TableNotActive    TableCode = "table_not_active"    // the table is neither ACTIVE nor UPDATING: it is being created or deleted, for example
	WrongKey          TableCode = "wrong_key"           // the attributes of the table's key don't have the expected names, or are not strings
	TTLOff            TableCode = "ttl_off"             // TTL is disabled, so records are never deleted
	TTLWrongAttribute TableCode = "ttl_wrong_attribute" // TTL is enabled on another attribute
	NoPermission      TableCode = "no_permission"       // the credentials don't allow an action
	NoIndex           TableCode = "no_index"            // the table has no index named Options.LeaseIndex
	IndexNotActive    TableCode = "index_not_active"    // the index Options.LeaseIndex is being created or deleted
	WrongIndex        TableCode = "wrong_index"         // the index Options.LeaseIndex has another key than the one that the store needs
	WideIndex         TableCode = "wide_index"          // the index Options.LeaseIndex projects more than the keys, which costs more
	IndexConflict     TableCode = "index_conflict"      // records don't fit the key of an index, so DynamoDB refuses to write them
	MultiRegion       TableCode = "multi_region"        // the table can be written in more than one Region
	NoTransactions    TableCode = "no_transactions"     // the table does not support transactions, so no writes can be enlisted
	CheckFailed       TableCode = "check_failed"        // a call failed for another reason, so the check is incomplete
)

// TableProblem is one problem with a table.
type TableProblem struct {
	Code   TableCode
	Detail string // what is wrong, and what to do
	// Warning reports whether the table can be used in spite of the problem.
	Warning bool
	// Action is the IAM action whose call failed, such as "dynamodb:DescribeTable". It is
	// empty if the problem is not a failed call.
	Action string
	Err    error // the error that caused the problem; nil if there was none
}

// Error returns p.Detail.
func (p *TableProblem) Error() string { return p.Detail }

// Unwrap returns p.Err.
func (p *TableProblem) Unwrap() error { return p.Err }

// TableProblems is an error that lists all problems found with a table. Use errors.As to
// get it, or each *[TableProblem] in it, from an error.
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

// CheckTable checks whether the store can use its table. It checks whether the table exists
// and is ACTIVE, and whether its key, TTL, indexes and Regions suit the store. It also checks
// whether the credentials allow GetItem, PutItem and UpdateItem. CheckTable returns nil or
// [TableProblems], some of which may be warnings only.
//
// enlisted names the other tables that handlers enlist writes to. If there are any, CheckTable
// checks whether these tables and the store's own table support transactions, and which
// actions on them the credentials allow.
//
// With Options.LeaseIndex, CheckTable also checks the index, and whether the credentials
// allow Query on it. A missing permission for Query is a warning, because only
// [Store.DeadLeases] needs it.
//
// CheckTable is meant for the smoke test of a deployment, not for every cold start. It
// takes five round trips, two more with Options.LeaseIndex, one more if there are enlisted
// tables, and five more for each of them. Use a [HealthCheck] for health probes.
//
// If a call gets no reply, CheckTable adds the problem [TimedOut] or [Unreachable]. It then
// skips the remaining checks, because each of them would probably wait for a reply too.
//
// CheckTable changes no item. To test a write permission, it sends a write whose condition
// never holds, so that DynamoDB refuses the write. CheckTable needs the permissions that the
// store needs, and dynamodb:DescribeTable and dynamodb:DescribeTimeToLive.
func (s *Store) CheckTable(ctx context.Context, enlisted ...string) error {
	problems := checkShape(ctx, s.wire.SDK(), s.table, &s.opts, len(enlisted) > 0)
	if !problems.has(NoTable) && !problems.noReply() {
		problems = append(problems, s.checkPermissions(ctx)...)
	}
	if len(enlisted) > 0 && !problems.has(NoTable) && !problems.has(NoTransactions) && !problems.has(NoPermission) && !problems.noReply() {
		problems = append(problems, s.checkRecordsTransact(ctx)...)
	}
	for _, table := range enlisted {
		if !problems.noReply() {
			problems = append(problems, s.checkEnlisted(ctx, table)...)
		}
	}
	if !problems.has(NoTable) && !problems.noReply() {
		problems = append(problems, s.checkDeadLeases(ctx)...)
	}
	return problems.err()
}

func (ps TableProblems) has(code TableCode) bool {
	return slices.ContainsFunc(ps, func(p *TableProblem) bool { return p.Code == code })
}

// noReply reports whether a call to DynamoDB got no reply. The caller then makes no further
// calls, because each of them would probably wait for a reply too.
func (ps TableProblems) noReply() bool { return ps.has(TimedOut) || ps.has(Unreachable) }

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

// failedCheck returns the problem for a call that failed with err. action is the IAM action
// of the call.
func failedCheck(client *dynamodb.Client, table, action string, err error) *TableProblem {
	p := &TableProblem{Code: CheckFailed, Action: action, Err: err}
	switch reasonOf(err) {
	case lambdaidem.ReasonNoTable:
		p.Code = NoTable
		p.Detail = fmt.Sprintf("table %q does not exist in Region %s of this account; create it, or correct the name, the Region or the credentials",
			table, client.Options().Region)
	case lambdaidem.ReasonPermission:
		p.Code = NoPermission
		p.Detail = fmt.Sprintf("these credentials don't allow %s on table %q; add it to their policy (cause: %v)", action, table, err)
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

// checkIndexes returns the problems with the table's secondary indexes. If a record
// has an attribute that is a key of an index, the attribute's value must be of the key's type
// and not empty. Otherwise DynamoDB refuses to write the record, with a ValidationException.
// checkIndexes returns a problem for each key that records don't fit. An index on attributes
// that records don't have is no problem, because it does not include records. checkIndexes
// skips Options.LeaseIndex, which checkLeaseIndex checks.
func checkIndexes(table string, d *types.TableDescription, o *Options) TableProblems {
	var problems TableProblems
	columns := o.layout()
	check := func(index *string, key []types.KeySchemaElement, remedy string) {
		for _, k := range key {
			name := aws.ToString(k.AttributeName)
			is := attributeType(d, name)
			if writes, conflict := columns.conflict(name, is); conflict {
				problems = append(problems, &TableProblem{Code: IndexConflict, Detail: fmt.Sprintf(
					"index %q of table %q has the %s key %q of type %s, and records have an attribute of that name with values of type %s: "+
						"DynamoDB refuses to write them; %s", aws.ToString(index), table, k.KeyType, name, is, writes, remedy)})
			}
		}
	}
	for _, index := range d.GlobalSecondaryIndexes {
		if o.LeaseIndex == "" || aws.ToString(index.IndexName) != o.LeaseIndex {
			check(index.IndexName, index.KeySchema, "delete the index, or key it on an attribute that no record has")
		}
	}
	for _, index := range d.LocalSecondaryIndexes {
		check(index.IndexName, index.KeySchema, "a local index can't be deleted, so rename the attribute by an option, or make another table")
	}
	return problems
}

// conflict reports whether an index on the named attribute, with a key of type key, would make
// DynamoDB refuse the store's writes. That is so if the store writes values to the attribute
// that are of another type or may be empty. writes describes the values that the store writes
// to the attribute. It is "" if the store does not write the attribute.
func (l *layout) conflict(name string, key types.ScalarAttributeType) (writes kinds, conflict bool) {
	if name == attrPart { // the store's items for the parts of a large answer have a map in this attribute
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

// checkRegions returns a warning if the table is a global table, which can be written in more
// than one Region. With eventual consistency, two Regions can run requests with the same key
// at once. With strong consistency, DynamoDB supports
// neither TTL nor transactions on the table.
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

// probeID is a key that no item has. The ids of records end in a hash, which never has this
// form.
const probeID = "lambdaidem#table-check"

// checkPermissions calls each action that the store needs, without writing anything. It
// returns a problem for each action that fails.
func (s *Store) checkPermissions(ctx context.Context) TableProblems {
	var problems TableProblems
	tried := func(action string, err error) {
		refused := (*types.ConditionalCheckFailedException)(nil)
		// DynamoDB checks permissions before it evaluates the condition or validates the
		// key. So an error about the condition or the key shows that the action is allowed.
		if err == nil || errors.As(err, &refused) || reasonOf(err) == lambdaidem.ReasonInvalid {
			return
		}
		problems = append(problems, failedCheck(s.wire.SDK(), s.table, action, err))
	}
	_, err := s.wire.SDK().GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(s.table), Key: s.key(probeID), ConsistentRead: aws.Bool(true),
	})
	tried("dynamodb:GetItem", err)
	if problems.noReply() {
		return problems
	}
	_, err = s.wire.SDK().PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String(s.table), Item: s.key(probeID),
		ConditionExpression: aws.String(s.writes.probe.condition), ExpressionAttributeNames: s.writes.probe.names,
	})
	tried("dynamodb:PutItem", err)
	if problems.noReply() {
		return problems
	}
	_, err = s.wire.SDK().UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String(s.table), Key: s.key(probeID),
		ConditionExpression: aws.String(s.writes.probe.condition), ExpressionAttributeNames: s.writes.probe.names,
	})
	tried("dynamodb:UpdateItem", err)
	return problems
}
