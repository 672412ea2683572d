package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/functions/internal/ledger"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// byHand returns the event that the runbook in docs/deploy.md ("Payments without a receipt") makes
// of a payment's item. The text is exactly what the runbook's query writes.
func byHand(t *testing.T, p ledger.Payment) events.DynamoDBTimeWindowEvent {
	t.Helper()
	item, err := attributevalue.MarshalMap(p)
	if err != nil {
		t.Fatal(err)
	}
	image, err := attributevalue.MarshalMapJSON(item)
	if err != nil {
		t.Fatal(err)
	}
	return event(t, `{"Records": [{"eventName": "INSERT", "dynamodb": {"Keys": {"id": {"S":"`+p.ID+`"}}, "NewImage": `+string(image)+`}}]}`)
}

func event(t *testing.T, text string) events.DynamoDBTimeWindowEvent {
	t.Helper()
	var e events.DynamoDBTimeWindowEvent
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestRunbookIsTheOneThatIsTested(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "deploy.md"))
	if err != nil {
		t.Fatal(err)
	}
	const query = "--query '{Records: [{eventName: `\"INSERT\"`, dynamodb: {Keys: {id: Item.id}, NewImage: Item}}]}' > event.json"
	if !strings.Contains(string(page), query) {
		t.Errorf("docs/deploy.md has not %s", query)
	}
}

// listOfThePage reads docs/deploy.md. It returns the scan with which that page lists the payments, and
// the times at which the first and the last record of the page's example arrived in the stream.
func listOfThePage(t *testing.T) (scan *dynamodb.ScanInput, first, last time.Time) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "deploy.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)For an entry from `(\\S+)` to `(\\S+)`:\n.*?--filter-expression '([^']+)'.*?--expression-attribute-values '([^']+)'").FindSubmatch(page)
	if found == nil {
		t.Fatal("docs/deploy.md has no list of payments for an entry")
	}
	for i, at := range []*time.Time{&first, &last} {
		if *at, err = time.Parse(time.RFC3339, string(found[1+i])); err != nil {
			t.Fatal(err)
		}
	}
	values, err := attributevalue.UnmarshalMapJSON(found[4])
	if err != nil {
		t.Fatal(err)
	}
	return &dynamodb.ScanInput{FilterExpression: aws.String(string(found[3])), ExpressionAttributeValues: values}, first, last
}

// A payment has the time at which its handler made it. Its transaction may arrive later by the
// function's timeout and the age at which AWS refuses a signature. The runbook's list has such a
// payment too: otherwise the entry would be deleted, and the payment would never get a receipt.
func TestRunbookListsPaymentsThatWereCommittedLate(t *testing.T) {
	const (
		signatureLife = 15 * time.Minute // docs/correctness.md, "What bounds a delayed request"
		clockSkew     = 2 * time.Second  // the default of lambdaidem.Options.MaxSkew
	)
	deployed, err := template.Read("../../template.yaml", template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	late := signatureLife
	for _, f := range deployed.Functions {
		if f.LogicalID == "PaymentsFunction" {
			late += f.Timeout
		}
	}
	if late == signatureLife {
		t.Fatal("template.yaml has no PaymentsFunction")
	}
	scan, first, last := listOfThePage(t)
	client := ddblocal.ForTest(t).Client()
	scan.TableName = aws.String(template.TablesForTest(t, client, "../../template.yaml")["PaymentsTable"])
	var want []string
	for _, created := range []time.Time{first.Add(-late - clockSkew), first, last, last.Add(clockSkew)} {
		p := payment()
		p.CreatedAt = created.UTC().Format(time.RFC3339Nano)
		item, err := attributevalue.MarshalMap(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: scan.TableName, Item: item}); err != nil {
			t.Fatal(err)
		}
		want = append(want, p.ID+" of "+p.CreatedAt)
	}
	out, err := client.Scan(t.Context(), scan)
	if err != nil {
		t.Fatal(err)
	}
	var listed []ledger.Payment
	if err := attributevalue.UnmarshalListOfMaps(out.Items, &listed); err != nil {
		t.Fatal(err)
	}
	for _, w := range want {
		if !slices.ContainsFunc(listed, func(p ledger.Payment) bool { return p.ID+" of "+p.CreatedAt == w }) {
			t.Errorf("the list does not have %s, although its record may have arrived between %v and %v", w, first, last)
		}
	}
}

// An event that an operator sends by hand has the key and the payload of the stream record,
// even if the stream record failed or the payment was refunded since.
func TestK5_PaymentHandedInByHandIsTheSame(t *testing.T) {
	for _, failed := range []int{0, 1} { // failed attempts in the stream before it gave the record up
		s, p := newSetUp(), payment()
		if failed > 0 {
			s.queue.err = os.ErrDeadlineExceeded
		}
		if got := s.deliver(t, insert(t, p)); len(got) != failed {
			t.Fatalf("%v failed", got)
		}
		s.queue.err = nil
		s.clock.Advance(20 * 24 * time.Hour)
		p.Refundable = 0
		for range 2 {
			if got := s.deliver(t, byHand(t, p).Records...); len(got) != 0 {
				t.Errorf("%v failed", got)
			}
		}
		s.expect(t, 1, 1)
	}
}

// An operator who sends a payment by hand sees why it failed. The function returns an error,
// because a record without a sequence number can't be in a list of failures.
func TestV2_PaymentHandedInByHandFailsWithAReason(t *testing.T) {
	s, p := newSetUp(), payment()
	p.Owner = ""
	ctx, _ := dynamostore.Capture(t.Context())
	if answer, err := s.guarded(s.store)(ctx, byHand(t, p)); err == nil || !strings.Contains(err.Error(), p.ID) {
		t.Errorf("%+v, %v; want an error that names the payment", answer, err)
	}
}

// A record without keys is not a payment, and does not crash the function.
func TestRecordWithoutAKeyIsPassedOver(t *testing.T) {
	for _, text := range []string{
		`{"Records": [{"eventName": "INSERT", "dynamodb": {"Keys": {}}}]}`,
		`{"Records": [{"eventName": "INSERT", "dynamodb": {"Keys": {"id": {"NULL": true}}}}]}`,
		`{"Records": [{"eventName": "INSERT", "dynamodb": {}}]}`,
	} {
		s := newSetUp()
		if failed := s.deliver(t, event(t, text).Records...); len(failed) != 0 {
			t.Errorf("%s: %v failed", text, failed)
		}
		s.expect(t, 0, 0)
	}
}
