package rehearsal

import (
	"encoding/json"
	"strings"

	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
)

// Access is what a request to DynamoDB does to the records of the toolkit.
type Access struct {
	Kind   AccessKind
	Record string            // id of the record; empty if Kind is Other
	Table  string            // the record's table
	Token  string            // the fencing token of the attempt that sends the request, if it writes one or demands one
	Tables []string          // every table that the request names, in the order of the request
	Writes int               // in a transaction: the number of writes besides the one on the record
	Checks int               // in a transaction: the number of actions that only check a condition
	Whole  bool              // the request writes a whole record: it replaces none that is valid
	Names  map[string]string // the names of the record's attributes by the placeholders of package dynamostore, such as #status
}

// AccessKind is what a request does to a record.
type AccessKind string

// The kinds of access.
const (
	Other      AccessKind = ""           // no record is involved
	Read       AccessKind = "read"       // reads the record, or a part of its answer
	Lock       AccessKind = "lock"       // writes a new record, whose lease the attempt then has
	Takeover   AccessKind = "takeover"   // takes the lease of a record that another attempt left
	SaveStep   AccessKind = "save step"  // stores the result of a step of the handler
	WritePart  AccessKind = "write part" // stores a part of a large answer
	Completion AccessKind = "completion" // stores the answer
	Release    AccessKind = "release"    // gives the lease back without an answer
	Hold       AccessKind = "hold"       // lets the record wait for an operator
)

// Changes reports whether a request of this kind changes a record.
func (k AccessKind) Changes() bool {
	return k != Other && k != Read && k != WritePart
}

// recordPrefix begins the id of every record. A hash follows, or the guard's Options.IDPrefix, '#'
// and a hash. The id of a part of an answer is the record's id, the part's number and a checksum,
// separated by '#'.
const recordPrefix = "lambdaidem#"

// action is a request that reads or writes one item, or one action of a transaction.
type action struct {
	TableName                 string
	Key, Item                 map[string]value
	UpdateExpression          string
	ConditionExpression       string
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues map[string]value
}

// value is the value of an attribute, if it is a string.
type value struct{ S string }

// AccessOf reads a request to DynamoDB. It recognizes records by their ids and by the
// placeholders of package dynamostore, so that attributes may have other names.
func AccessOf(r *proxy.Request) Access {
	var body struct {
		action

		TransactItems []map[string]action
	}
	if json.Unmarshal(r.Body, &body) != nil { // DynamoDB refuses such a request
		return Access{}
	}
	if len(body.TransactItems) == 0 {
		kind, record := body.kind(r.Operation)
		return Access{Kind: kind, Record: record, Table: body.TableName, Token: body.token(), Tables: []string{body.TableName}, Whole: body.Item != nil, Names: body.ExpressionAttributeNames}
	}
	var a Access
	for _, item := range body.TransactItems {
		for name, each := range item {
			a.Tables = append(a.Tables, each.TableName)
			if kind, record := each.kind(name + "Item"); kind.Changes() {
				a.Kind, a.Record, a.Table, a.Token = kind, record, each.TableName, each.token()
				a.Whole, a.Names = each.Item != nil, each.ExpressionAttributeNames
				continue
			}
			if name == "ConditionCheck" {
				a.Checks++
			} else {
				a.Writes++
			}
		}
	}
	return a
}

// kind returns what an action does to a record, and the record's id.
func (a *action) kind(operation string) (AccessKind, string) {
	id := recordID(a.Key)
	if id == "" {
		id = recordID(a.Item)
	}
	id, isPart := cutPart(id)
	status := a.ExpressionAttributeValues[":status"].S
	if a.Item != nil {
		status = a.Item[a.ExpressionAttributeNames["#status"]].S
	}
	switch {
	case id == "":
		return Other, ""
	case operation == "GetItem":
		return Read, id
	case isPart:
		return WritePart, id
	case status == "INPROGRESS" && a.Item != nil:
		return Lock, id
	case status == "INPROGRESS":
		return Takeover, id
	case status == "COMPLETED":
		return Completion, id
	case status == "RELEASED":
		return Release, id
	case strings.Contains(a.UpdateExpression, "#steps"):
		return SaveStep, id
	case operation == "UpdateItem":
		return Hold, id
	default: // a probe of a health check
		return Other, ""
	}
}

func (a *action) token() string {
	if a.Item != nil {
		return a.Item["token"].S
	}
	return a.ExpressionAttributeValues[":token"].S
}

func recordID(attributes map[string]value) string {
	for _, v := range attributes {
		if strings.HasPrefix(v.S, recordPrefix) {
			return v.S
		}
	}
	return ""
}

// cutPart returns the id of the record that an id belongs to, and reports whether the id is that of
// a part. The id of a part has three or four fields after recordPrefix, that of a record one or two.
func cutPart(id string) (record string, isPart bool) {
	fields := strings.Split(id, "#")
	if len(fields) < 4 { // the first one is in recordPrefix
		return id, false
	}
	return strings.Join(fields[:len(fields)-2], "#"), true
}
