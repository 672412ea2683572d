package dynamostore

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Only a table with a sort key can have local secondary indexes. DynamoDB refuses records that
// don't fit the key of one, as with a global index.
func TestO3_CheckTableFindsALocalIndexThatRefusesRecords(t *testing.T) {
	for _, c := range []struct {
		of      string
		refused bool
	}{{"N", true}, {"S", false}} {
		client, other := freshTable(t)
		table := other + "-local"
		if _, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName: aws.String(table), KeySchema: key("PK", "SK"), AttributeDefinitions: typed("PK", "S", "SK", "S", "status", c.of), BillingMode: types.BillingModePayPerRequest,
			LocalSecondaryIndexes: []types.LocalSecondaryIndex{
				{IndexName: aws.String("mine"), KeySchema: key("PK", "status"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}},
			},
		}); err != nil {
			t.Fatal(err)
		}
		dropAfter(t, client, table)
		if err := CreateTable(t.Context(), client, table, sorted); err != nil { // switches TTL on
			t.Logf("CreateTable: %v", err)
		}
		s := New(client, table, patient, sorted)
		_, refused := s.Acquire(t.Context(), claim)
		if (refused != nil) != c.refused {
			t.Fatalf("status as %s: the lock is %v", c.of, refused)
		}
		if found := s.CheckTable(t.Context()); (found != nil) != c.refused {
			t.Errorf("status as %s: CheckTable says %v, and DynamoDB refuses every record with: %v", c.of, found, refused)
		}
	}
}

// A health check says which key the table must have: with the sort key of the options.
func TestO3_AHealthCheckNamesTheSortKeyThatIsMissing(t *testing.T) {
	client, other := freshTable(t)
	table := madeTable(t, client, other+"-plain", key("PK"), typed("PK", "S"), "expiration")
	h := NewHealthCheck(New(client, table, patient, sorted), quiet, unhurried).Check(t.Context())
	wrong := wrongIn(h)
	if len(wrong) != 1 || wrong[0].Code != WrongKey || strings.Contains(wrong[0].Detail, "without a sort key") || !strings.Contains(wrong[0].Detail, `"SK"`) {
		t.Errorf("found %+v; want one that names the sort key SK", wrong)
	}
}
