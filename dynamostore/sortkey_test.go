package dynamostore

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/storetest"
)

// sorted sets the options for a table whose key consists of PK and SK.
func sorted(o *Options) { o.IDAttribute, o.SortKeyAttribute = "PK", "SK" }

func TestConformanceWithASortKey(t *testing.T) {
	indexed := func(o *Options) { o.LeaseIndex = "leases" }
	client, table := freshTable(t, sorted, indexed)
	s := New(client, table, patient, sorted, indexed)
	t.Run("suite", func(t *testing.T) {
		storetest.Test(t, func(*testing.T) lambdaidem.Store { return s })
	})
	if err := s.CheckTable(t.Context(), table); err != nil {
		t.Error(err)
	}
}

// everyItem returns all items of the desk's table.
func (d *desk) everyItem(t *testing.T) []attributes {
	t.Helper()
	out, err := d.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(d.table), ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	return out.Items
}

// putUsers writes items of a user to a table with a sort key: two with the same partition key, and
// one that another idempotency library could have written.
func (d *desk) putUsers(t *testing.T) {
	t.Helper()
	for _, key := range [][2]string{{"ACCOUNT#1", "BALANCE"}, {"ACCOUNT#1", "OWNER"}, {"idempotency#payments", "payments.handler#5f3c"}} {
		item := attributes{"PK": str(key[0]), "SK": str(key[1]), "status": str("COMPLETED"), "expiration": number(time.Now().Add(time.Hour).Unix())}
		if _, err := d.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(d.table), Item: item}); err != nil {
			t.Fatal(err)
		}
	}
}

// A purge and a scan leave other tools' items alone. They also continue after a page whose last
// item is another tool's, with different values in its two key attributes.
func TestO2_OperatorsWorkOnATableWithASortKey(t *testing.T) {
	d := openDesk(t, sorted, func(o *Options) { o.CompressFrom, o.LeaseIndex = 1<<30, "leases" })
	d.putUsers(t)
	for key, text := range map[string]string{"small": "Rome", "large": strings.Repeat("x", 600<<10)} {
		if _, err := d.do(t, d.guard, key, answerOf(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := d.do(t, d.guard, key, answerOf("again")); err != nil || got != text {
			t.Errorf("the replay of %s is %.20q, %v", key, got, err)
		}
	}
	d.die(t, "dead")
	for _, item := range d.everyItem(t) {
		id, _ := item["PK"].(*types.AttributeValueMemberS)
		if sk, _ := item["SK"].(*types.AttributeValueMemberS); strings.HasPrefix(id.Value, recordPrefix) && sk.Value != id.Value {
			t.Errorf("an item has the key %s, %s", id.Value, sk.Value)
		}
	}

	var found []string
	for rec, err := range d.store.DeadLeases(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, rec.ID)
	}
	for inspected, err := range d.store.ScanLeases(t.Context(), func(o *ScanOptions) { o.PageSize = 1 }) {
		if err == nil {
			found = append(found, inspected.Record.ID)
		}
	}
	if len(found) != 2 || found[0] != d.id("dead") || found[1] != d.id("dead") {
		t.Errorf("found the dead leases %q", found)
	}

	sum := d.purge(t, d.operator(t, "alice"), func(p *PurgeOptions) { p.PageSize = 1 })
	if sum.Purged != 2 || sum.Parts != 3 || sum.Foreign != 3 {
		t.Errorf("the purge says %+v", sum)
	}
	if n := len(d.everyItem(t)); n != 6 {
		t.Errorf("%d items are left; want three records and three items of the user", n)
	}
	if _, err := d.operator(t, "alice").Release(t.Context(), d.inspect(t, d.id("dead"))); err != nil {
		t.Error(err)
	}
	if got, err := d.do(t, d.guard, "dead", answerOf("again")); err != nil || got != "again" {
		t.Errorf("after the release: %q, %v", got, err)
	}
}

func TestO2_APurgeRefusesAPositionOfATableWithoutASortKey(t *testing.T) {
	d := openDesk(t, sorted)
	for _, err := range d.operator(t, "alice").Purge(t.Context(), func(p *PurgeOptions) { p.After = "lambdaidem#1" }) {
		if failure := (*lambdaidem.StoreError)(nil); !errors.As(err, &failure) || !failure.NotApplied || !strings.Contains(err.Error(), `"lambdaidem#1" is no position`) {
			t.Errorf("error %v", err)
		}
	}
}

// A handler may write other items to the table of the records, in one transaction with the record.
func TestE1_EnlistedWritesInTheTableOfTheRecords(t *testing.T) {
	d := openDesk(t, sorted)
	d.putUsers(t)
	credit := func(ctx context.Context) (string, error) {
		Enlist(ctx).UpdateValue("balance", d.table, map[string]string{"PK": "ACCOUNT#1", "SK": "BALANCE"}, "ADD cents :n", Args{":n": 5})
		return "credited", nil
	}
	for range 2 {
		if got, err := d.do(t, d.guard, "credit", credit); err != nil || got != "credited" {
			t.Fatal(got, err)
		}
	}
	if d.runs != 1 {
		t.Errorf("%d runs", d.runs)
	}
	ours := map[string]string{"PK": d.id("credit"), "SK": d.id("credit")}
	if _, err := d.do(t, d.guard, "trespass", func(ctx context.Context) (string, error) {
		Enlist(ctx).DeleteValue("record", d.table, ours)
		return "", nil
	}); !errors.Is(err, lambdaidem.ErrWriteInvalid) {
		t.Errorf("a write to a record is %v", err)
	}
}

// An item that has a record's id but another sort key is not the record.
func TestD4_AnItemWithAnotherSortKeyIsForeign(t *testing.T) {
	d := openDesk(t, sorted)
	itm := claimed(claim)
	attrs := d.store.layout.attributes(itm)
	attrs["SK"] = str("other")
	if _, err := d.store.layout.parse(attrs); !isForeign(err) || !strings.Contains(err.Error(), "sort key") {
		t.Errorf("error %v", err)
	}
	if _, err := d.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(d.table), Item: attrs}); err != nil {
		t.Fatal(err)
	}
	if rec, err := d.store.Acquire(t.Context(), claim); err != nil || rec.Token != claim.Token {
		t.Errorf("the lock beside it is %+v, %v", rec, err)
	}
}

func TestCheckTableComparesTheSortKey(t *testing.T) {
	client, sortedTable := freshTable(t, sorted)
	_, plainTable := freshTable(t)
	numbered := madeTable(t, client, plainTable+"-numbered", key("PK", "SK"), typed("PK", "S", "SK", "N"), "expiration")
	for _, c := range []struct {
		name, table, want string
		options           func(*Options)
	}{
		{"both have it", sortedTable, "", sorted},
		{"the option is missing", sortedTable, `has the sort key "SK"; set Options.SortKeyAttribute to "SK"`, func(o *Options) { o.IDAttribute = "PK" }},
		{"the option has another name", sortedTable, `has the sort key "SK", not "range"; set Options.SortKeyAttribute to "SK"`,
			func(o *Options) { o.IDAttribute, o.SortKeyAttribute = "PK", "range" }},
		{"a number", numbered, `has a sort key "SK" of type N, not S (string)`, sorted},
		{"a number, and the option is missing", numbered, `has a sort key "SK" of type N, not S (string)`, func(o *Options) { o.IDAttribute = "PK" }},
		{"the table has none", plainTable, `has no sort key, and Options.SortKeyAttribute is "SK"`, func(o *Options) { o.SortKeyAttribute = "SK" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := New(client, c.table, patient, c.options).CheckTable(t.Context())
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v; want one with %q", err, c.want)
			}
		})
	}
}

func TestSortKeyAttributeIsNoOtherAttribute(t *testing.T) {
	for _, name := range []string{"id", "status", "token", attrPart} {
		func() {
			defer func() {
				if v, _ := recover().(string); !strings.Contains(v, "Options.SortKeyAttribute is") && !strings.Contains(v, "already Options.SortKeyAttribute") {
					t.Errorf("with %q, New panics with %q", name, v)
				}
			}()
			New(dynamodb.New(dynamodb.Options{Region: "eu-west-1", HTTPClient: http.DefaultClient}), "table", func(o *Options) { o.SortKeyAttribute = name })
		}()
	}
}

// Only a table with a sort key can have local secondary indexes. As with a global index, DynamoDB
// refuses records that don't fit the key of a local index.
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
		if err := CreateTable(t.Context(), client, table, sorted); err != nil { // enables TTL
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

// A failed health check says which key the table must have, including the sort key of the options.
func TestO3_AHealthCheckNamesTheSortKeyThatIsMissing(t *testing.T) {
	client, other := freshTable(t)
	table := madeTable(t, client, other+"-plain", key("PK"), typed("PK", "S"), "expiration")
	h := NewHealthCheck(New(client, table, patient, sorted), quiet, unhurried).Check(t.Context())
	wrong := wrongIn(h)
	if len(wrong) != 1 || wrong[0].Code != WrongKey || strings.Contains(wrong[0].Detail, "without a sort key") || !strings.Contains(wrong[0].Detail, `"SK"`) {
		t.Errorf("found %+v; want one that names the sort key SK", wrong)
	}
}

// The store that looks for dead leases does not know that the partition key is renamed, as in most
// tables with a sort key. It must not report that there are none: nobody would look at a held record.
func TestO2_DeadLeasesOfATableWhosePartitionKeyIsRenamed(t *testing.T) {
	d := openDesk(t, sorted, func(o *Options) { o.LeaseIndex = "leases" })
	d.die(t, "dead")
	d.die(t, "also dead")
	watching := New(d.client, d.table, func(o *Options) { o.LeaseIndex = "leases" })
	n := 0
	for rec, err := range watching.DeadLeases(t.Context()) {
		n++
		if failure := (*lambdaidem.StoreError)(nil); rec.ID != "" || !errors.As(err, &failure) || failure.Reason != lambdaidem.ReasonInvalid || !strings.Contains(err.Error(), "Options.IDAttribute") {
			t.Errorf("%+v, %v", rec, err)
		}
	}
	if n != 1 {
		t.Errorf("%d results; want one error", n)
	}
}
