package window

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
)

// refusal is an error of DynamoDB, with the item whose condition does not hold. A reply that is no
// error can have the item as it was before a write.
type refusal struct {
	Type                string `json:"__type"`
	Item, Attributes    recordItem
	CancellationReasons []struct{ Item recordItem }
}

// recordItem is a record as DynamoDB sends it, with the attributes that are strings, numbers or maps.
type recordItem map[string]struct {
	S, N string
	M    map[string]json.RawMessage
}

// foundRecord is what a reply says of the record. Its fields are empty if the reply has none.
type foundRecord struct {
	token, status, fingerprint string
	leaseEnd                   time.Time
	held                       bool     // without an expiry: see lambdaidem.Record.Held
	steps                      []string // the names of the steps whose results it has, sorted
}

// The values of a record's status, as package dynamostore documents them.
const (
	inProgress = "INPROGRESS"
	completed  = "COMPLETED"
	released   = "RELEASED"
)

// refusalOf returns the error in a reply. It is empty if the reply is not readable.
func refusalOf(reply proxy.Reply) refusal {
	var r refusal
	if json.Unmarshal(reply.Body, &r) != nil {
		return refusal{}
	}
	return r
}

// kind returns the name of the error, such as ConditionalCheckFailedException.
func (r *refusal) kind() string {
	_, kind, _ := strings.Cut(r.Type, "#")
	return kind
}

// isCondition reports whether a condition did not hold.
func (r *refusal) isCondition() bool {
	return r.kind() == "ConditionalCheckFailedException" || r.kind() == "TransactionCanceledException"
}

// record returns the record in the error, given the names of its attributes.
func (r *refusal) record(names attributeNames) foundRecord {
	item := r.Item
	if item == nil {
		item = r.Attributes
	}
	for _, reason := range r.CancellationReasons {
		if item == nil {
			item = reason.Item
		}
	}
	end, _ := strconv.ParseInt(item[names.leaseEnd()].N, 10, 64) // epoch milliseconds; 0 if there is none
	return foundRecord{
		token: item["token"].S, status: item[names.status()].S, fingerprint: item[names.fingerprint()].S,
		leaseEnd: time.UnixMilli(end), held: item[names.expiration()].N == "", steps: slices.Sorted(maps.Keys(item[names.steps()].M)),
	}
}
