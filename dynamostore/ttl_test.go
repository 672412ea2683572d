package dynamostore

import (
	"errors"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// TTL counts as enabled only on the attribute that this store's records have.
func TestL7_TTLEnabledReadsTheStoresAttribute(t *testing.T) {
	client, other := freshTable(t)
	for name, c := range map[string]struct {
		ttl  string // the attribute on which the table has TTL
		opt  func(*Options)
		want bool
	}{
		"on":                {"expiration", patient, true},
		"off":               {"", patient, false},
		"another attribute": {"ttl", patient, false},
		"renamed":           {"ttl", func(o *Options) { patient(o); o.ExpirationAttribute = "ttl" }, true},
		"renamed, not the table's": {"expiration", func(o *Options) {
			patient(o)
			o.ExpirationAttribute = "ttl"
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			table := madeTable(t, client, other+"-ttl", key("id"), typed("id", "S"), c.ttl)
			if got, err := New(client, table, c.opt).TTLEnabled(t.Context()); err != nil || got != c.want {
				t.Errorf("TTLEnabled is %v, %v; want %v", got, err, c.want)
			}
		})
	}
	_, err := New(client, other+"-none", patient).TTLEnabled(t.Context())
	if failure, ok := errors.AsType[*lambdaidem.StoreError](err); !ok || failure.Reason != lambdaidem.ReasonNoTable || failure.Op != "ttl_enabled" || !failure.NotApplied {
		t.Errorf("without a table: %v", err)
	}
}

// DynamoDB takes up to an hour to enable TTL, and DynamoDB Local none.
func TestL7_TTLCountsAsEnabledWhileItIsBeingEnabled(t *testing.T) {
	client, table := freshTable(t)
	for status, want := range map[string]bool{"ENABLING": true, "ENABLED": true, "DISABLING": false, "DISABLED": false} {
		answering, _ := over(client, fixed(200, `{"TimeToLiveDescription":{"AttributeName":"expiration","TimeToLiveStatus":"`+status+`"}}`))
		if got, err := New(answering, table, patient).TTLEnabled(t.Context()); err != nil || got != want {
			t.Errorf("while TTL is %s, TTLEnabled is %v, %v; want %v", status, got, err, want)
		}
	}
}
