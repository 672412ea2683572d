package operate_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

// names checks that the commands and options of idem in the page's sentences exist.
func (w *world) names(t *testing.T) {
	sh, help := w.newShell(t), map[string]string{}
	spans, all := 0, ""
	for _, verb := range []string{"check", "leases", "show", "trace", "settle", "release", "purge"} {
		help[verb] = sh.must("idem %s --help", verb)
		all += help[verb]
	}
	for _, title := range w.page.titles {
		text := console.ReplaceAllString(w.page.text[title], "")
		for _, span := range regexp.MustCompile("`(?:idem ([a-z]+))?([^`\n]*)`").FindAllStringSubmatch(text, -1) {
			if strings.HasPrefix(span[2], "aws ") { // a command of the AWS CLI
				continue
			}
			usage := all
			if span[1] != "" {
				spans++
				if usage = help[span[1]]; usage == "" {
					t.Errorf("%q names idem %s, which is no command", title, span[1])
				}
			}
			for _, flag := range regexp.MustCompile(`--[a-z-]+`).FindAllString(span[2], -1) {
				if spans++; !strings.Contains(usage, flag+" ") {
					t.Errorf("%q names %s, which idem %s has not", title, flag, span[1])
				}
			}
		}
	}
	if spans < 10 {
		t.Errorf("the page names %d things of idem", spans)
	}
}

// throttles checks that the log distinguishes a hot key from a table that is too small, and names
// the key.
func (w *world) throttles(t *testing.T) {
	hot, small := payment("bob", "order-6"), payment("alice", "order-7")
	w.inject(locks("TableWriteKeyRangeThroughputExceeded"))
	for range 2 {
		w.send(t, hot).expect(t, http.StatusServiceUnavailable, false, "idempotency_store_unavailable")
	}
	w.inject(locks("TableWriteProvisionedThroughputExceeded"))
	w.send(t, small).expect(t, http.StatusServiceUnavailable, false, "idempotency_store_unavailable")
	w.inject(nil)

	r := w.read(t, "The table throttles")
	if limits := r.block(); !strings.Contains(limits, "key_range") || !strings.Contains(limits, "provisioned") {
		t.Errorf("the log names not the limits: %s", limits)
	}
	if who := r.block(); !strings.Contains(who, "|bob") || strings.Contains(who, "|alice") {
		t.Errorf("the hot key is bob's: %s", who)
	}
	// The alarms watch these metrics.
	counted := map[string]float64{}
	for series := range w.counted.Take().All() {
		counted[series.Name] += series.Sum
	}
	for _, metric := range []string{"Throttled", "ThrottledKeyRange", "ThrottledProvisioned"} {
		if counted[metric] == 0 {
			t.Errorf("the metric %s is 0, and its alarm silent", metric)
		}
	}

	// Nothing was lost: the clients send their requests again, with the same keys.
	for _, r := range []request{hot, small} {
		w.send(t, r).expect(t, http.StatusCreated, false, "pay_")
	}
	r.completed()
}

// ttlWasOff checks that idem check reports a table without TTL, and reports no problem after the
// page's command has turned TTL on.
func (w *world) ttlWasOff(t *testing.T) {
	table := w.stack.Table("IdempotencyTable")
	w.setTTL(t, table, "expiration", false)
	r := w.read(t, "TTL was off")
	if out := r.block(); !strings.Contains(out, "WRONG ttl_off") || !strings.HasSuffix(out, "All is well.\n") {
		t.Errorf("it was not found, or not mended: %s", out)
	}
	w.setTTL(t, table, "expiration", false)
	w.setTTL(t, table, "ttl", true)
	if out := r.block(); !strings.Contains(out, "WRONG ttl_wrong_attribute") || !strings.HasSuffix(out, "All is well.\n") {
		t.Errorf("it was not found, or not mended: %s", out)
	}
}

func (w *world) setTTL(t *testing.T, table, attribute string, on bool) {
	t.Helper()
	if _, err := w.stack.Database().Client().UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName: aws.String(table), TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(attribute), Enabled: aws.Bool(on)},
	}); err != nil {
		t.Fatal(err)
	}
}

// copyTable restores the table as DynamoDB does, which DynamoDB Local can't: to a new table with
// the present items and the index of the first one, but without TTL.
func (w *world) copyTable(t *testing.T) {
	t.Helper()
	client, from := w.stack.Database().Client(), w.stack.Table("IdempotencyTable")
	to := from + "-restored"
	createTable(t, client, to)
	w.setTTL(t, to, "expiration", false)
	for pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: aws.String(from), ConsistentRead: aws.Bool(true)}); pages.HasMorePages(); {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(to), Item: item}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// restored checks the page's section about restored tables. Its commands check, repair and read a
// restored idempotency table. If the idempotency table was kept instead, they let the records
// expire whose writes to the business tables are lost.
//
// The records get older here, as if the restore was to a moment an hour ago. The payment of order-15
// was completed two minutes before that moment, and that of order-9 a quarter of an hour after it.
func (w *world) restored(t *testing.T) {
	w.age(t, "|bob", time.Hour)
	doubtful := payment("bob", "order-15")
	w.send(t, doubtful).expect(t, http.StatusCreated, false, "pay_")
	w.age(t, "|bob", 17*time.Minute)
	late := payment("bob", "order-9")
	first := w.send(t, late)
	first.expect(t, http.StatusCreated, false, "pay_")
	w.age(t, "|bob", 45*time.Minute)
	w.moments = strings.NewReplacer(pageMoment, time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), pageUntil, time.Now().UTC().Format(time.RFC3339))

	r := w.read(t, "The table was restored")
	if out := r.block(); !strings.Contains(out, "WRONG ttl_off") || !strings.HasSuffix(out, "All is well.\n") {
		t.Errorf("the restored table was not mended: %s", out)
	}
	if out := r.block(); strings.Count(out, "  held  ") != 3 {
		t.Errorf("what was held at that moment is not listed: %s", out)
	}
	if code, out := r.shell.run(showCommand(late)); code != 3 {
		t.Errorf("the key of after that moment is not new: %d\n%s", code, out)
	}

	// The idempotency table was kept.
	r.shell = w.newShell(t)
	w.send(t, late).expect(t, http.StatusCreated, true, first.body)
	if out := r.block(); !strings.Contains(out, "1 record forgotten") || strings.Count(out, "DECIDE 1 record") != 2 {
		t.Errorf("not the one record of after that moment was forgotten, and the one near it listed: %s", out)
	}
	w.send(t, late).expect(t, http.StatusInternalServerError, false, "idempotency_answer_unavailable")
	w.send(t, doubtful).expect(t, http.StatusCreated, true, "pay_")
	if out := r.block(); !strings.Contains(out, "1 record forgotten") {
		t.Errorf("the record was not forgotten by its id: %s", out)
	}
	w.send(t, doubtful).expect(t, http.StatusInternalServerError, false, "idempotency_answer_unavailable")
	if out := r.block(); !regexp.MustCompile(`expires .*, in 1[456]m`).MatchString(out) {
		t.Errorf("the record doesn't expire in 15 minutes: %s", out)
	}
}

// age makes completed payments older: those whose scope ends with caller.
func (w *world) age(t *testing.T, caller string, by time.Duration) {
	t.Helper()
	client, table := w.stack.Database().Client(), aws.String(w.stack.Table("IdempotencyTable"))
	for pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: table, ConsistentRead: aws.Bool(true)}); pages.HasMorePages(); {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			scope, _ := item["scope"].(*types.AttributeValueMemberS)
			if scope == nil || !strings.HasPrefix(scope.Value, "PaymentsFunction ") || !strings.HasSuffix(scope.Value, caller) || item["completed_at"] == nil {
				continue
			}
			if _, err := client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
				TableName: table, Key: map[string]types.AttributeValue{"id": item["id"]},
				UpdateExpression:          aws.String("SET started_at = started_at - :by, completed_at = completed_at - :by"),
				ExpressionAttributeValues: map[string]types.AttributeValue{":by": &types.AttributeValueMemberN{Value: strconv.FormatInt(by.Milliseconds(), 10)}},
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// freshTable creates a table for one test and returns its name.
func freshTable(t *testing.T, server *ddblocal.Server) string {
	t.Helper()
	name := "test-" + rand.Text()
	createTable(t, server.Client(), name)
	return name
}

func createTable(t *testing.T, client *dynamodb.Client, name string) {
	t.Helper()
	if err := dynamostore.CreateTable(t.Context(), client, name, func(o *dynamostore.Options) { o.LeaseIndex = "leases" }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := client.DeleteTable(context.WithoutCancel(t.Context()), &dynamodb.DeleteTableInput{TableName: aws.String(name)}); err != nil {
			t.Error(err)
		}
	})
}
