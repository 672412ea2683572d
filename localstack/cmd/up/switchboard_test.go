package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lambdaidem/toolkit/localstack/clearing"
	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/iam"
	"github.com/lambdaidem/toolkit/localstack/stack"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// call sends a request and returns its status and body; status 0 is no answer.
func call(t *testing.T, method, url, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for pair := range slices.Chunk(header, 2) {
		if pair[0] == "Host" {
			req.Host = pair[1]
		}
		req.Header.Set(pair[0], pair[1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	text, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// A person breaks the functions' calls to the table, and mends them.
func TestRehearsal_BreaksTheTableOnDemand(t *testing.T) {
	var arrived atomic.Int32
	database := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived.Add(1)
		_, _ = io.WriteString(w, "{}")
	}))
	defer database.Close()
	r, err := startSwitchboard(0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	options := emulator.Options{Endpoint: database.URL}
	r.between(&options)
	if options.Endpoint == database.URL {
		t.Fatal("the functions call the database directly")
	}
	for _, step := range []struct {
		state   string
		status  int
		says    string
		arrives int32
	}{
		{"", 200, "{}", 1},
		{"throttled", 400, "TableWriteProvisionedThroughputExceeded", 0},
		{"unreachable", 0, "", 0},
		{"lost-replies", 0, "", 1},
		{"works", 200, "{}", 1},
	} {
		if step.state != "" {
			if status, text := call(t, http.MethodPost, r.url+"/table/"+step.state, ""); status != 200 {
				t.Errorf("%s: %d %s", step.state, status, text)
			}
		}
		before := arrived.Load()
		status, text := call(t, http.MethodPost, options.Endpoint, "{}", "X-Amz-Target", "DynamoDB_20120810.UpdateItem")
		if status != step.status || !strings.Contains(text, step.says) || arrived.Load()-before != step.arrives {
			t.Errorf("%s: the call got %d %q, and %d arrived", step.state, status, text, arrived.Load()-before)
		}
	}
	if status, text := call(t, http.MethodPost, r.url+"/table/broken", ""); status != 404 || !strings.Contains(text, `"throttled"`) {
		t.Errorf("an unknown state: %d %s", status, text)
	}
}

// Web pages that a person visits can't break the table: their requests come from the same machine.
func TestRehearsal_IsProtectedAgainstWebPages(t *testing.T) {
	r, err := startSwitchboard(0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	host := strings.TrimPrefix(r.url, "http://")
	_, port, _ := strings.Cut(host, ":")
	for name, test := range map[string]struct {
		method, path string
		header       []string
		status       int
	}{
		"curl":                              {"POST", "/table/works", nil, 200},
		"curl, by the other name":           {"POST", "/table/works", []string{"Host", "localhost:" + port}, 200},
		"a form":                            {"POST", "/table/throttled", []string{"Origin", "http://evil.example"}, 403},
		"fetch without CORS":                {"POST", "/kill/PaymentsFunction", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		"another server on this machine":    {"POST", "/table/throttled", []string{"Sec-Fetch-Site", "same-site"}, 403},
		"another host, by POST":             {"POST", "/table/throttled", []string{"Host", "evil.example:" + port}, 421},
		"another host (DNS rebinding), GET": {"GET", "/iam", []string{"Host", "evil.example:" + port, "Sec-Fetch-Site", "same-origin"}, 421},
	} {
		t.Run(name, func(t *testing.T) {
			if status, text := call(t, test.method, r.url+test.path, "", test.header...); status != test.status {
				t.Errorf("%d %s; want %d", status, text, test.status)
			}
		})
	}
}

// The clearing house can be asked what it was told, by downstream key.
func TestRehearsal_ShowsWhatTheClearingHouseWasTold(t *testing.T) {
	r, err := startSwitchboard(0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	if status, _ := call(t, http.MethodGet, r.url+"/clearings", ""); status != 404 {
		t.Errorf("without a clearing house: %d", status)
	}
	house, err := clearing.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer house.Close() //nolint:errcheck // the test is over
	r.clearing.Store(house)
	for range 2 {
		call(t, http.MethodPost, house.URL()+"/clearings", `{"transfer":"tra_1","amount":1250,"currency":"EUR"}`, "Idempotency-Key", "k1", "Content-Type", "application/json")
	}
	status, text := call(t, http.MethodGet, r.url+"/clearings", "")
	if want := `{"Key":"k1","Transfer":"tra_1","Amount":1250,"Calls":2,"Refused":false}` + "\n"; status != 200 || text != want {
		t.Errorf("%d %q; want %q", status, text, want)
	}
}

// The permissions that the functions have used can be seen at any time.
func TestRehearsal_ShowsPermissions(t *testing.T) {
	r, err := startSwitchboard(0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	if status, text := call(t, http.MethodGet, r.url+"/iam", ""); status != 404 || !strings.Contains(text, "-no-iam") {
		t.Errorf("without a checker: %d %s", status, text)
	}
	checker, err := iam.New(&template.Template{Functions: []*template.Function{{LogicalID: "Shop", Role: template.Role{Statements: []template.Statement{{
		At: "template.yaml:1:1", Effect: "Allow", Actions: []string{"sqs:SendMessage"}, Resources: []string{"arn:aws:sqs:us-east-1:000000000000:Mails"},
	}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	r.iam.Store(checker)
	if status, text := call(t, http.MethodGet, r.url+"/iam", ""); status != 200 || !strings.Contains(text, "Shop  sqs:SendMessage  Mails  template.yaml:1:1") {
		t.Errorf("%d %s", status, text)
	}
}

// A taken port is found out before anything is built.
func TestUp_ATakenPortIsFoundBeforeTheBuild(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // the test is over
	port := taken.Addr().(*net.TCPAddr).Port
	var progress bytes.Buffer
	_, err = stack.Start(t.Context(), stack.Options{Port: port, Progress: &progress})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("port %d is taken", port)) || progress.Len() != 0 {
		t.Errorf("Start = %v, after %q", err, &progress)
	}
	if got := preferred(port); got != 0 {
		t.Errorf("the taken port %d is preferred", got)
	}
	if free := freePort(t); preferred(free) != free {
		t.Errorf("the free port %d is not preferred", free)
	}
}

// The guide to a user's template makes a token by the shell.
func TestGuide_ShowsHowToMakeAToken(t *testing.T) {
	with := &template.Template{Functions: []*template.Function{{Routes: []template.Route{{Authorizer: &template.Authorizer{Header: "Authorization"}}}}}}
	var guide strings.Builder
	tokenGuide(&guide, with)
	var script strings.Builder
	for line := range strings.Lines(guide.String()) {
		if strings.HasPrefix(line, "  ") {
			script.WriteString(line)
		}
	}
	out, err := exec.Command("/bin/sh", "-c", script.String()+"printf %s $TOKEN").CombinedOutput()
	parts := strings.Split(string(out), ".")
	if err != nil || len(parts) != 3 || parts[0] != "e30" || parts[2] != "" {
		t.Fatalf("the token is %q, %v, of\n%s", out, err, &script)
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if want := `{"iss":"` + stack.Issuer + `","sub":"alice"}`; err != nil || string(claims) != want {
		t.Errorf("the claims are %s, %v; want %s", claims, err, want)
	}
	guide.Reset()
	tokenGuide(&guide, &template.Template{Functions: []*template.Function{{Routes: []template.Route{{}}}}})
	if guide.Len() != 0 {
		t.Errorf("no route asks for a token, and the guide says %s", &guide)
	}
}

// Records are in the table that is keyed by id alone and has a TTL.
func TestGuide_FindsTheTableOfRecords(t *testing.T) {
	id := []template.KeyPart{{Name: "id", Type: "HASH"}}
	sam := &template.Template{Tables: []template.Table{
		{Name: "orders", Key: id},
		{Name: "lines", Key: append(id, template.KeyPart{Name: "line", Type: "RANGE"}), TTLAttribute: "ttl"},
		{Name: "records", Key: id, TTLAttribute: "expiration", Indexes: []template.Index{{Name: "leases"}}},
	}}
	if name, index := recordTable(sam); name != "records" || index != "leases" {
		t.Errorf("the table is %q, its index %q", name, index)
	}
	if name, _ := recordTable(&template.Template{Tables: sam.Tables[:2]}); name != "" {
		t.Errorf("the table is %q", name)
	}
}
