package memdynamo_test

import (
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
)

// A replica with strong consistency refuses what the developer guide lists ("How DynamoDB global
// tables work").
func TestD3_AStronglyConsistentReplicaHasNeitherTransactionsNorTTL(t *testing.T) {
	const transact = `{"TransactItems":[{"Put":{"TableName":"records","Item":{"id":{"S":"a"}}}}]}`
	const ttl = `{"TableName":"records","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"expiration"}}`
	for mode, refused := range map[memdynamo.Consistency]bool{memdynamo.Strong: true, memdynamo.Eventual: false} {
		db := newDB(t)
		db.Global("records", mode, "us-east-1", "us-east-2")
		if out := mustServe(t, db, "DescribeTable", `{"TableName":"records"}`); !strings.Contains(out, `"MultiRegionConsistency":"`+string(mode)+`","Replicas":[{"RegionName":"us-east-1"},{"RegionName":"us-east-2"}]`) {
			t.Errorf("%s: the table is described as %s", mode, out)
		}
		for op, body := range map[string]string{"TransactWriteItems": transact, "UpdateTimeToLive": ttl} {
			typ, message, _ := refusal(db, op, body)
			if got := typ == memdynamo.Validation && strings.Contains(message, "multi-Region strong consistency"); got != refused {
				t.Errorf("%s: %s ended with %q %q", mode, op, typ, message)
			}
		}
		if _, wrote := db.Item("records", memdynamo.Item{"id": memdynamo.String("a")}); wrote == refused {
			t.Errorf("%s: the transaction wrote: %v", mode, wrote)
		}
	}
}

func TestReplicateIsNoWriteOfTheRegions(t *testing.T) {
	db := newDB(t)
	db.OnWrite(func(w memdynamo.Write) { t.Errorf("OnWrite saw %+v", w) })
	key := memdynamo.Item{"id": memdynamo.String("a")}
	there := memdynamo.Item{"id": memdynamo.String("a"), "s": memdynamo.String("other Region")}
	db.Replicate("records", key, there)
	if got, ok := db.Item("records", key); !ok || got.String() != there.String() {
		t.Errorf("the item is %v", got)
	}
	db.Replicate("records", key, nil)
	if got, ok := db.Item("records", key); ok {
		t.Errorf("the item is still there: %v", got)
	}
}
