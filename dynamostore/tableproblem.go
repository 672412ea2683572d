package dynamostore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

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

// More kinds of problems. A [HealthCheck] can find these kinds and those that are listed for
// [Store.CheckTable]. Of the kinds listed here, CheckTable can find TimedOut and Unreachable, and
// [Store.CheckKeys] can find TimedOut, Unreachable and NoKey.
const (
	Throttled   TableCode = "throttled"   // DynamoDB refused the request for lack of capacity
	TimedOut    TableCode = "timeout"     // DynamoDB did not reply in time
	Unreachable TableCode = "unreachable" // no connection to DynamoDB could be made
	NoKey       TableCode = "no_key"      // Options.Encryption does not return a needed key, or Find returns another key than Current
)

// UnreadableTexts is the code of a problem that [Store.CheckKeys] finds: the keys of
// Options.Encryption don't decrypt an answer or a step in the table.
const UnreadableTexts TableCode = "unreadable_texts"

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

// TableProblems is an error that lists all problems found with a table. Use errors.As with a
// TableProblems to get the list from an error, or with a *[TableProblem] to get the first problem.
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

func (ps TableProblems) has(code TableCode) bool {
	return slices.ContainsFunc(ps, func(p *TableProblem) bool { return p.Code == code })
}

// noReply reports whether a call to DynamoDB got no reply. The caller then makes no further
// calls, because each of them would probably wait for a reply too.
func (ps TableProblems) noReply() bool { return ps.has(TimedOut) || ps.has(Unreachable) }

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
