package window

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
)

// refusal is an error of DynamoDB, with the item whose condition does not hold.
type refusal struct {
	Type                string `json:"__type"`
	Item                recordItem
	CancellationReasons []struct{ Item recordItem }
}

// recordItem is a record as DynamoDB sends it, with the attributes that are strings or numbers.
type recordItem map[string]struct{ S, N string }

// foundRecord is what a refusal says of the record. Its fields are empty if the refusal has none.
type foundRecord struct {
	token, status string
	leaseEnd      time.Time
	held          bool // without an expiry: see lambdaidem.Record.Held
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
	for _, reason := range r.CancellationReasons {
		if item == nil {
			item = reason.Item
		}
	}
	end, _ := strconv.ParseInt(item[names.leaseEnd()].N, 10, 64) // epoch milliseconds; 0 if there is none
	return foundRecord{
		token: item["token"].S, status: item[names.status()].S, leaseEnd: time.UnixMilli(end), held: item[names.expiration()].N == "",
	}
}
