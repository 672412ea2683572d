package memdynamo

import (
	"fmt"
	"time"
)

// expired reports whether TTL may delete the item: its TTL attribute must be a number of epoch
// seconds in the past, at most five years ago ("How it works: DynamoDB Time to Live (TTL)").
func (t *table) expired(item Item, now time.Time) bool {
	v, ok := item[t.ttl]
	if t.ttl == "" || !ok || v.Type != TypeNumber {
		return false
	}
	at := mustNumber(v.Text)
	return at.cmp(epoch(now)) < 0 && at.cmp(epoch(now.AddDate(-5, 0, 0))) >= 0
}

// epoch returns the time in seconds since 1970, to the nanosecond.
func epoch(t time.Time) number {
	seconds, fraction := integer(int(t.Unix())), mustNumber(fmt.Sprintf("0.%09d", t.Nanosecond()))
	n, err := seconds.add(fraction)
	if err != nil {
		panic(err) // can't happen: the sum has less than 38 digits
	}
	return n
}

type timeToLiveSpecification struct {
	AttributeName string
	Enabled       bool
}

type updateTimeToLiveRequest struct {
	TableName               string
	TimeToLiveSpecification timeToLiveSpecification
}

// updateTimeToLive switches TTL on or off at once. At AWS this takes up to an hour, during which
// another change is refused.
func (db *DB) updateTimeToLive(in updateTimeToLiveRequest) (any, error) {
	t, err := db.described(in.TableName)
	if err != nil {
		return nil, err
	}
	spec := in.TimeToLiveSpecification
	switch {
	case t.consistency == Strong:
		return nil, invalidf("TimeToLive is not supported for a table with multi-Region strong consistency")
	case spec.AttributeName == "":
		return nil, invalidf("1 validation error detected: Value null at 'timeToLiveSpecification.attributeName' failed to satisfy constraint: Member must not be null")
	case !spec.Enabled && t.ttl == "":
		return nil, invalidf("TimeToLive is already disabled")
	case t.ttl != "" && t.ttl != spec.AttributeName:
		return nil, invalidf("TimeToLive is active on a different AttributeName: current AttributeName is %s", t.ttl)
	case spec.Enabled && t.ttl != "":
		return nil, invalidf("TimeToLive is already enabled")
	}
	t.ttl = ""
	if spec.Enabled {
		t.ttl = spec.AttributeName
	}
	return struct{ TimeToLiveSpecification timeToLiveSpecification }{spec}, nil
}

type timeToLiveDescription struct {
	TimeToLiveStatus string
	AttributeName    string `json:",omitempty"`
}

func (db *DB) describeTimeToLive(in tableRequest) (any, error) {
	t, err := db.described(in.TableName)
	if err != nil {
		return nil, err
	}
	d := timeToLiveDescription{TimeToLiveStatus: "DISABLED", AttributeName: t.ttl}
	if t.ttl != "" {
		d.TimeToLiveStatus = "ENABLED"
	}
	return struct{ TimeToLiveDescription timeToLiveDescription }{d}, nil
}
