package dynamostore

import (
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func TestO3_AHealthCheckOfATableThatServesWritesNothing(t *testing.T) {
	client, table := freshTable(t)
	_, plain := freshTable(t)
	sorted := madeTable(t, client, plain+"-sorted", key("pk", "sk"), typed("pk", "B", "sk", "N"), "")
	record := attributes{"id": str(probeID), "kept": str("as it is")} // even an existing item stays unchanged
	if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(plain), Item: record}); err != nil {
		t.Fatal(err)
	}
	every := []string{"PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem"}
	c := NewHealthCheck(New(client, table, patient), quiet, func(o *HealthOptions) {
		o.Timeout = time.Minute
		o.Enlisted = []EnlistedTable{
			{Table: plain, Key: attributes{"id": str(probeID)}, Actions: every},
			{Table: sorted, Key: attributes{"pk": &types.AttributeValueMemberB{Value: []byte("x")}, "sk": number(1)}, Actions: every},
		}
	})
	h := c.Check(t.Context())
	if h.Status != HealthPass || len(h.Checks) != 12 {
		t.Errorf("%+v; want twelve checks that pass", h)
	}
	for of, want := range map[string][]attributes{table: nil, sorted: nil, plain: {record}} {
		if got := scanned(t, client, of); !reflect.DeepEqual(got, want) && len(got)+len(want) > 0 {
			t.Errorf("%s has %v; want %v", of, got, want)
		}
	}
}

func TestO3_AHealthCheckFindsMisSetTables(t *testing.T) {
	for _, c := range []struct {
		name   string
		key    []types.KeySchemaElement
		types  []types.AttributeDefinition
		ttl    string
		status HealthStatus
		code   TableCode
	}{
		{"ttl off", key("id"), typed("id", "S"), "", HealthWarn, TTLOff},
		{"ttl on another attribute", key("id"), typed("id", "S"), "ttl", HealthWarn, TTLWrongAttribute},
		{"key of another name", key("pk"), typed("pk", "S"), "expiration", HealthFail, WrongKey},
		{"key of another type", key("id"), typed("id", "N"), "expiration", HealthFail, WrongKey},
		{"sort key", key("id", "sk"), typed("id", "S", "sk", "S"), "expiration", HealthFail, WrongKey},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, other := freshTable(t)
			table := madeTable(t, client, other+"-misset", c.key, c.types, c.ttl)
			h := NewHealthCheck(New(client, table, patient), quiet, unhurried).Check(t.Context())
			wrong := wrongIn(h)
			if h.Status != c.status || len(wrong) != 1 || wrong[0].Code != c.code {
				t.Errorf("%+v; want %s, for %s alone", h, c.status, c.code)
			}
		})
	}
}

func TestO3_AHealthCheckFindsNoTable(t *testing.T) {
	client, table := freshTable(t)
	h := NewHealthCheck(New(client, table+"-none", patient), quiet, unhurried).Check(t.Context())
	if wrong := wrongIn(h); h.Status != HealthFail || len(wrong) != 1 || wrong[0].Code != NoTable {
		t.Errorf("%+v; want fail, for no_table alone", h)
	}
	c := NewHealthCheck(New(client, table, patient), quiet, unhurried, func(o *HealthOptions) {
		o.Enlisted = []EnlistedTable{
			{Table: table + "-none", Key: attributes{"id": str("x")}, Actions: []string{"PutItem"}},
			{Table: table, Key: attributes{"pk": str("x")}, Actions: []string{"UpdateItem"}},
		}
	})
	h = c.Check(t.Context())
	if wrong := wrongIn(h); len(wrong) != 2 || wrong[0].Code != NoTable || wrong[1].Code != WrongKey {
		t.Errorf("%+v; want no_table and wrong_key, of the enlisted tables", h)
	}
}

// unhurried sets a long timeout, so that a busy machine does not look like a fault.
func unhurried(o *HealthOptions) { o.Timeout = time.Minute }

// wrongIn returns the checks that warn or fail.
func wrongIn(h Health) []Check {
	var wrong []Check
	for _, c := range h.Checks {
		if c.Status == HealthWarn || c.Status == HealthFail {
			wrong = append(wrong, c)
		}
	}
	return wrong
}

// madeTable creates a table, with TTL on the attribute ttl unless that is empty.
func madeTable(t *testing.T, client *dynamodb.Client, table string, key []types.KeySchemaElement, typed []types.AttributeDefinition, ttl string) string {
	t.Helper()
	if _, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String(table), KeySchema: key, AttributeDefinitions: typed, BillingMode: types.BillingModePayPerRequest,
	}); err != nil {
		t.Fatal(err)
	}
	dropAfter(t, client, table)
	if ttl == "" {
		return table
	}
	if _, err := client.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String(table),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(ttl), Enabled: aws.Bool(true)},
	}); err != nil {
		t.Fatal(err)
	}
	return table
}

// scanned returns all items of a table.
func scanned(t *testing.T, client *dynamodb.Client, table string) []map[string]types.AttributeValue {
	t.Helper()
	out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(table), ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	return out.Items
}
