package commands

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
)

// A journal is accepted only by the purge that wrote it.
func TestO2_AJournalIsBoundToItsPurge(t *testing.T) {
	own := purgeIdentity{Table: "arn:aws:dynamodb:eu-west-1:1:table/t", TableID: "1", Region: "eu-west-1", Filter: filter{Caller: "bob"}}
	file := filepath.Join(t.TempDir(), "state")
	j, err := openJournal(file, own)
	if err != nil || j.After != "" {
		t.Fatalf("a new journal is %+v, %v", j, err)
	}
	j.Found.Chosen = 3
	if err := j.keep(dynamostore.PurgeProgress{After: "lambdaidem#5", Purged: 2}); err != nil {
		t.Fatal(err)
	}
	if j, err := openJournal(file, own); err != nil || j.After != "lambdaidem#5" || j.Sum.Purged != 2 || j.Found.Chosen != 3 {
		t.Errorf("the same purge reads %+v, %v", j, err)
	}
	for says, change := range map[string]func(*purgeIdentity){
		"the table":              func(p *purgeIdentity) { p.Table = "arn:aws:dynamodb:us-east-1:1:table/t" },
		"created anew":           func(p *purgeIdentity) { p.TableID = "2" },
		"the Region":             func(p *purgeIdentity) { p.Region = "us-east-1" },
		"the endpoint":           func(p *purgeIdentity) { p.Endpoint = "http://localhost:8000" },
		"--attribute":            func(p *purgeIdentity) { p.Attributes = `id="pk"` },
		"which records":          func(p *purgeIdentity) { p.Filter.Caller = "alice" },
		"these differ: --forget": func(p *purgeIdentity) { p.Forget = true },
		"--steps":                func(p *purgeIdentity) { p.Steps = true },
		"--dry-run":              func(p *purgeIdentity) { p.DryRun = true },
		"--reason":               func(p *purgeIdentity) { p.Reason = "another request" }, // items may have been written since the last request
	} {
		other := own
		change(&other)
		if _, err := openJournal(file, other); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), own.Table) {
			t.Errorf("where %s differs, it says %v", says, err)
		}
	}
	if err := j.done(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("a journal that is done is there: %v", err)
	}
	if err := j.done(); err != nil {
		t.Errorf("done twice: %v", err)
	}
}

// Every count of a resumed purge includes the counts from before it stopped.
func TestO2_TheCountsOfAResumedPurgeAddUp(t *testing.T) {
	var one dynamostore.PurgeProgress
	for i := range reflect.TypeOf(one).NumField() {
		switch f := reflect.ValueOf(&one).Elem().Field(i); f.Kind() {
		case reflect.String:
			f.SetString("a")
		case reflect.Float64:
			f.SetFloat(1)
		default:
			f.SetInt(1)
		}
	}
	sum := reflect.ValueOf(add(one, one))
	for i := range sum.NumField() {
		if got := fmt.Sprint(sum.Field(i)); got != "2" && got != "2ns" && sum.Type().Field(i).Name != "After" {
			t.Errorf("%s is %s", sum.Type().Field(i).Name, got)
		}
	}
}

// A journal is refused if an older version wrote it: without the table's ARN it might belong to
// another table, and without findings for each flag, or without those of tenants, the report would be incomplete.
func TestO2_AnOlderJournalIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	for _, text := range []string{`{"table":"t","after":"lambdaidem#5"}`, `{"purge":{"tableARN":"arn:aws:dynamodb:eu-west-1:1:table/t"},"after":"lambdaidem#5"}`,
		`{"purge":{"tableARN":"arn:aws:dynamodb:eu-west-1:1:table/t"},"after":"lambdaidem#5","found":{"records":1,"chosen":1}}`,
		`{"purge":{"tableARN":"arn:aws:dynamodb:eu-west-1:1:table/t"},"after":"lambdaidem#5","found":{"records":1,"chosen":1,"flags":{},"alike":{},"routes":{}}}`, `not JSON`, ``} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if j, err := openJournal(file, purgeIdentity{Table: "arn:aws:dynamodb:eu-west-1:1:table/t"}); err == nil {
			t.Errorf("%q is accepted: %+v", text, j)
		}
	}
}

// If another Region has a table of the same name, purging that table must not resume from the
// journal of the first.
func TestO2_PurgeRefusesTheStateOfAnotherRegion(t *testing.T) {
	d := openDesk(t)
	d.pay(d.guard, "k", paid)
	file := filepath.Join(t.TempDir(), "state")
	identity, err := (&purgeCommand{filter: filter{All: true}, dryRun: true, operatorFlags: operatorFlags{reason: "dry run"}}).identity(t.Context(), &connection{table: d.table}, d.client)
	if err != nil || identity.Table == "" || identity.Table == d.table {
		t.Fatalf("%+v, %v", identity, err)
	}
	identity.Endpoint = os.Getenv("AWS_ENDPOINT_URL_DYNAMODB")
	text, err := json.Marshal(journal{Purge: identity, After: d.view("k").ID, Kept: time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC), Found: newFindings()})
	if err != nil {
		t.Fatal(err)
	}
	purge := []string{"purge", "--all", "--dry-run", "--state", file}
	write := func() {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write()
	d.idem(append(purge, "--region", "eu-west-1")...).want(t, exitUsage, "another purge", "the Region")
	d.idem(append(purge, "--endpoint-url", strings.Replace(identity.Endpoint, "127.0.0.1", "localhost", 1))...).want(t, exitUsage, "the endpoint")
	d.idem(append(purge, "--attribute", "status=state")...).want(t, exitUsage, "--attribute")
	d.idem(append(purge, "--attribute", "status=status")...).want(t, exitDone, "0 records would be erased") // continues after the only record
	write()
	again := d.idem(purge...).want(t, exitDone, "0 records would be erased")
	if !strings.Contains(again.err, "Continuing the purge that stopped at 2026-11-26T10:00:00Z") {
		t.Errorf("a purge that is continued says %q", again.err)
	}
	d.idem(purge...).want(t, exitDone, "1 record would be erased") // the finished purge has removed its journal
}

// A purge must not resume from the journal of a purge that selects other records or changes them in
// another way. For example, a real purge would skip the records that a dry run has only counted.
func TestO2_EveryFlagThatChangesAPurgeIdentifiesIt(t *testing.T) {
	d := openDesk(t)
	identity := func(p purgeCommand) purgeIdentity {
		t.Helper()
		i, err := p.identity(t.Context(), &connection{table: d.table}, d.client)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	own := identity(purgeCommand{filter: filter{Caller: "bob"}})
	if got := own.differences(identity(purgeCommand{filter: filter{Caller: "bob", IDPrefix: "acme"}})); len(got) != 1 || got[0] != "which records are purged" {
		t.Errorf("a purge of one tenant differs in %q", got)
	}
	for differs, p := range map[string]purgeCommand{
		"--dry-run":                {filter: filter{Caller: "bob"}, dryRun: true},
		"--forget":                 {filter: filter{Caller: "bob"}, forget: true},
		"--steps":                  {filter: filter{Caller: "bob"}, steps: true},
		"which records are purged": {filter: filter{Caller: "bob", Tenant: "blue"}},
	} {
		if got := own.differences(identity(p)); len(got) != 1 || got[0] != differs {
			t.Errorf("a purge that differs in %s differs in %q", differs, got)
		}
	}
	if got := own.differences(identity(purgeCommand{filter: filter{Caller: "bob"}, rate: 7, operatorFlags: operatorFlags{by: "carol"}})); len(got) > 0 {
		t.Errorf("the rate and the operator make another purge: %q", got)
	}
	other := own
	other.Table, other.TableID = "arn:another", "another"
	if got := own.differences(other); len(got) != 1 || got[0] != "the table" {
		t.Errorf("a purge of another table differs in %q", got)
	}
}

// A table that was deleted and created again has the same ARN but other records, so the table's id
// must match too. DynamoDB Local returns no ids, so this test uses its own server.
func TestO2_PurgeRefusesTheStateOfATableThatWasCreatedAnew(t *testing.T) {
	id := "1"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"Table":{"TableArn":"arn:aws:dynamodb:us-east-1:1:table/t","TableId":"` + id + `"}}`))
	}))
	t.Cleanup(server.Close)
	client := dynamodb.New(dynamodb.Options{Region: "us-east-1", BaseEndpoint: aws.String(server.URL), Credentials: credentials.NewStaticCredentialsProvider("local", "local", "")})
	open := func(file string) (*journal, error) {
		return (&purgeCommand{state: file}).journal(t.Context(), &app{connection: connection{table: "t"}}, client)
	}
	file := filepath.Join(t.TempDir(), "state")
	j, err := open(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.keep(dynamostore.PurgeProgress{After: "lambdaidem#5"}); err != nil {
		t.Fatal(err)
	}
	if j, err := open(file); err != nil || j.After != "lambdaidem#5" {
		t.Errorf("for the same table: %+v, %v", j, err)
	}
	id = "2"
	if j, err := open(file); err == nil || exitOf(err) != exitUsage || !strings.Contains(err.Error(), "created anew") {
		t.Errorf("for a new table: %+v, %v", j, err)
	}
}
