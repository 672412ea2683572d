package dynamostore

import (
	"errors"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// wireTo returns a client, and its wire to a table that refuses every write because of its
// condition.
func wireTo(d described) (*dynamodb.Client, *faultyWire) {
	client, w := inMemory()
	w.next = doer(func(r *http.Request) (*http.Response, error) {
		_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		if action == "TransactWriteItems" && d.denied != action {
			return cancelledBy("ConditionalCheckFailed")(r, nil)
		}
		return d.answer(action), nil
	})
	return client, w
}

// quiet discards the log.
func quiet(o *HealthOptions) { o.Log = slog.New(slog.DiscardHandler) }

// sentSince returns the operations of all attempts after the first n.
func (w *faultyWire) sentSince(n int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sent[n:])
}

// checkOf returns the check with the given name. It fails the test unless there is exactly one.
func checkOf(t *testing.T, h Health, name string) Check {
	t.Helper()
	var found []Check
	for _, c := range h.Checks {
		if c.Name == name {
			found = append(found, c)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d checks %s in %+v; want one", len(found), name, h)
	}
	return found[0]
}

// The requests show what a probe costs: each item has only its key, and the condition never holds.
func TestO3_AHealthCheckWritesUnderAConditionThatNeverHolds(t *testing.T) {
	client, w := wireTo(described{})
	c := NewHealthCheck(New(client, "records", quick), quiet, func(o *HealthOptions) {
		o.Enlisted = []EnlistedTable{{Table: "accounts", Key: attributes{"owner": str("nobody")},
			Actions: []string{"PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem"}}}
	})
	if h := c.Check(t.Context()); h.Status != HealthPass {
		t.Fatalf("%+v", h)
	}
	const never = `"ConditionExpression":"attribute_exists(#id) AND attribute_not_exists(#id)"`
	for operation, want := range map[string]int{"PutItem": 1, "UpdateItem": 1, "TransactWriteItems": 4} {
		sent := w.bodies(operation)
		if len(sent) != want {
			t.Errorf("%d of %s; want %d", len(sent), operation, want)
		}
		for _, body := range sent {
			if strings.Count(body, never) != 1 || len(body) > 700 {
				t.Errorf("%s sends %s", operation, body)
			}
		}
	}
}

func TestO3_AHealthCheckSaysWhatIsWrongAndWhatToDo(t *testing.T) {
	const mrsc = `,"Replicas":[{"RegionName":"us-east-1"}],"MultiRegionConsistency":"STRONG"`
	for _, c := range []struct {
		name      string
		described described
		operation string
		fault     fault
		status    HealthStatus
		check     string
		code      TableCode
		says      string
	}{
		{"read not allowed", described{denied: "GetItem"}, "", nil, HealthFail, "GetItem", NoPermission, "add dynamodb:GetItem to"},
		{"put not allowed", described{denied: "PutItem"}, "", nil, HealthFail, "PutItem", NoPermission, "add dynamodb:PutItem to"},
		{"update not allowed", described{denied: "UpdateItem"}, "", nil, HealthFail, "UpdateItem", NoPermission, "add dynamodb:UpdateItem to"},
		{"no table", described{}, "GetItem", refuseAs("ResourceNotFoundException"), HealthFail, "GetItem", NoTable, "eu-west-1"},
		{"another key", described{}, "GetItem", refuseAs("ValidationException"), HealthFail, "GetItem", WrongKey, `string attribute "id"`},
		{"no connection", described{}, "GetItem", refuseConnection, HealthFail, "GetItem", Unreachable, "security groups"},
		{"no answer", described{}, "GetItem", hang, HealthFail, "GetItem", TimedOut, "no answer in time"},
		{"DynamoDB fails", described{}, "PutItem", fail(500, "InternalServerError", "oops"), HealthFail, "PutItem", CheckFailed, "oops"},
		{"reads throttled", described{}, "GetItem", throttle, HealthWarn, "GetItem", Throttled, "throttled"},
		{"writes throttled", described{}, "UpdateItem", throttle, HealthWarn, "UpdateItem", Throttled, "throttled"},
		{"busy", described{}, "PutItem", conflict, HealthPass, "PutItem", "", ""},
		{"TTL off", described{ttl: "DISABLED"}, "", nil, HealthWarn, "settings", TTLOff, `switch TTL on for the attribute "expiration"`},
		{"being deleted", described{status: "DELETING"}, "", nil, HealthFail, "settings", TableNotActive, "DELETING"},
		{"being deleted, TTL off", described{status: "DELETING", ttl: "DISABLED"}, "", nil, HealthFail, "settings", TableNotActive, "switch TTL on"},
		{"being updated", described{status: "UPDATING"}, "", nil, HealthPass, "settings", "", ""},
		{"several Regions, as was decided", described{ttl: "DISABLED", members: mrsc}, "", nil, HealthPass, "settings", "", ""},
		{"table can't be described", described{denied: "DescribeTable"}, "", nil, HealthPass, "settings", NoPermission, "dynamodb:DescribeTable"},
		{"TTL can't be described", described{denied: "DescribeTimeToLive"}, "", nil, HealthPass, "settings", NoPermission, "dynamodb:DescribeTimeToLive"},
		{"being deleted, and TTL can't be described", described{status: "DELETING", denied: "DescribeTimeToLive"}, "", nil, HealthFail, "settings", TableNotActive, "DELETING"},
		{"describing fails", described{}, "DescribeTable", fail(500, "InternalServerError", "oops"), HealthPass, "settings", CheckFailed, "oops"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, w := wireTo(c.described)
				if c.fault != nil {
					w.after(c.operation, slices.Repeat([]fault{c.fault}, 3)...) // every attempt fails
				}
				h := NewHealthCheck(New(client, "records", quick), quiet).Check(t.Context())
				got := checkOf(t, h, c.check)
				want := c.status
				if c.check == "settings" && c.says != "" && c.status == HealthPass {
					want = HealthUnknown
				}
				if h.Status != c.status || got.Status != want || got.Code != c.code || !strings.Contains(got.Detail, c.says) || (c.says == "") != (got.Detail == "") {
					t.Errorf("%s: %+v\nwant %s, and of the check %q, %q, that says %q", h.Status, got, c.status, want, c.code, c.says)
				}
				if c.says != "" && !strings.Contains(got.Detail, `"records"`) {
					t.Errorf("%q doesn't name the table", got.Detail)
				}
				failed := (*Check)(nil)
				if err := h.Err(); (err != nil) != (c.status == HealthFail) || err != nil && (!errors.As(err, &failed) || failed.Name != c.check || err.Error() != got.Detail) {
					t.Errorf("Err is %v", err)
				}
			})
		})
	}
}

// errors.Is and errors.As find the cause of a failed check.
func TestO3_AHealthErrorHasItsCause(t *testing.T) {
	client, _ := wireTo(described{denied: "PutItem"})
	err := NewHealthCheck(New(client, "records", quick), quiet).Check(t.Context()).Err()
	var all HealthError
	var cause *lambdaidem.StoreError
	if !errors.As(err, &all) || len(all) != 1 || !errors.As(err, &cause) || cause.Reason != lambdaidem.ReasonPermission {
		t.Errorf("%v has no cause: %v", err, cause)
	}
}

// Each action is allowed or denied separately, so every denied action is found in one check. After
// a missing table or a call without a reply, no further request is sent.
func TestO3_AHealthCheckAsksOnAsLongAsItCanLearn(t *testing.T) {
	denied := refuseAs("AccessDeniedException")
	for _, c := range []struct {
		name   string
		faults map[string]fault
		sent   []string
		failed []string
	}{
		{"two actions", map[string]fault{"GetItem": denied, "UpdateItem": denied},
			[]string{"GetItem", "PutItem", "UpdateItem", "DescribeTable", "DescribeTimeToLive"}, []string{"GetItem", "UpdateItem"}},
		{"no table", map[string]fault{"GetItem": refuseAs("ResourceNotFoundException")}, []string{"GetItem"}, []string{"GetItem"}},
		{"another key", map[string]fault{"GetItem": refuseAs("ValidationException")}, []string{"GetItem"}, []string{"GetItem"}},
		{"no connection", map[string]fault{"PutItem": refuseConnection}, []string{"GetItem", "PutItem", "PutItem", "PutItem"}, []string{"PutItem"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, w := wireTo(described{})
			for operation, f := range c.faults {
				w.after(operation, f, f, f)
			}
			h := NewHealthCheck(New(client, "records", quick), quiet).Check(t.Context())
			if got := w.sentSince(0); !slices.Equal(got, c.sent) {
				t.Errorf("sent %v; want %v", got, c.sent)
			}
			for _, check := range h.Checks {
				want := HealthPass
				switch {
				case slices.Contains(c.failed, check.Name):
					want = HealthFail
				case check.Name != "GetItem" && len(c.failed) == 1:
					want = HealthUnknown
				}
				if check.Status != want || want == HealthUnknown && !strings.Contains(check.Detail, c.failed[0]+" on table \"records\" failed before") {
					t.Errorf("%+v; want %q", check, want)
				}
			}
		})
	}
}

func TestS1_AHealthCheckNeedsNoMoreThanTheDocumentedPolicy(t *testing.T) {
	page, err := os.ReadFile("../docs/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	action := regexp.MustCompile(`"Action": \[([^\]]*)\]`)
	actionsIn := func(title string) string { // returns the actions of the first policy in a section
		_, section, _ := strings.Cut(string(page), "\n## "+title+"\n")
		policy := action.FindStringSubmatch(section)
		if policy == nil {
			t.Fatalf("docs/deploy.md has no policy in its section %q", title)
		}
		return policy[1]
	}
	table, settings := actionsIn("IAM policy"), actionsIn("Health")
	allowing := func(w *faultyWire, client *dynamodb.Client, actions string) *dynamodb.Client {
		return dynamodb.New(client.Options(), func(o *dynamodb.Options) {
			o.HTTPClient = doer(func(r *http.Request) (*http.Response, error) {
				_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
				if !strings.Contains(actions, `"dynamodb:`+action+`"`) {
					return described{denied: action}.answer(action), nil
				}
				return w.Do(r)
			})
		})
	}
	client, w := wireTo(described{})
	h := NewHealthCheck(New(allowing(w, client, table), "records", quick), quiet).Check(t.Context())
	if check := checkOf(t, h, "settings"); h.Status != HealthPass || check.Status != HealthUnknown {
		t.Errorf("with the policy alone: %+v; want pass, and settings that were not looked at", h)
	}
	h = NewHealthCheck(New(allowing(w, client, table+settings), "records", quick), quiet).Check(t.Context())
	if check := checkOf(t, h, "settings"); h.Status != HealthPass || check.Status != HealthPass {
		t.Errorf("with the settings' policy too: %+v; want every check to pass", h)
	}
}

// Without a key to encrypt with, every request is refused, and the health check reports that. It
// asks for the key no more often than requests do.
func TestS1_AHealthCheckAsksForTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := wireTo(described{})
		k := &keyService{current: "k1", down: true}
		check := NewHealthCheck(New(client, "test", k.encryption), quiet)
		h := check.Check(t.Context())
		if c := checkOf(t, h, "encryption"); h.Status != HealthFail || c.Status != HealthFail || c.Code != NoKey || !errors.Is(h.Err(), errKeyServiceDown) || !strings.Contains(c.Detail, "Options.Encryption.Current") {
			t.Errorf("%+v", c)
		}
		k.down = false
		for range 3 {
			time.Sleep(time.Minute)
			if c := checkOf(t, check.Check(t.Context()), "encryption"); c.Status != HealthPass {
				t.Errorf("%+v", c)
			}
		}
		if k.currents.Load() != 2 || k.finds.Load() != 1 {
			t.Errorf("Current was asked %d times, Find %d times", k.currents.Load(), k.finds.Load())
		}
		// Other processes must find the key that this process encrypts with.
		time.Sleep(5 * time.Minute)
		k.otherSecret = true
		if c := checkOf(t, check.Check(t.Context()), "encryption"); c.Status != HealthFail || !strings.Contains(c.Detail, "another secret") {
			t.Errorf("%+v", c)
		}
		time.Sleep(time.Minute)
		k.gone = true
		if c := checkOf(t, check.Check(t.Context()), "encryption"); c.Status != HealthFail || c.Code != NoKey || !strings.Contains(c.Detail, "Options.Encryption.Find") {
			t.Errorf("%+v", c)
		}
	})
}

func TestNewHealthCheckNamesTheOptionThatIsWrong(t *testing.T) {
	client, _ := inMemory()
	s := New(client, "records")
	accounts := func(change func(*EnlistedTable)) func(*HealthOptions) {
		e := EnlistedTable{Table: "accounts", Key: attributes{"id": str("x")}, Actions: []string{"PutItem"}}
		change(&e)
		return func(o *HealthOptions) { o.Enlisted = []EnlistedTable{e} }
	}
	for says, option := range map[string]func(*HealthOptions){
		"HealthOptions.Cache is 999ms":             func(o *HealthOptions) { o.Cache = 999 * time.Millisecond },
		"HealthOptions.WritesEvery is -1ns":        func(o *HealthOptions) { o.WritesEvery = -1 },
		"HealthOptions.SettingsEvery is 1ms":       func(o *HealthOptions) { o.SettingsEvery = time.Millisecond },
		"HealthOptions.Timeout is 999.999µs":       func(o *HealthOptions) { o.Timeout = time.Millisecond - 1 },
		`HealthOptions.Enlisted[0].Table is "a b"`: accounts(func(e *EnlistedTable) { e.Table = "a b" }),
		"HealthOptions.Enlisted[0].Key has 0":      accounts(func(e *EnlistedTable) { e.Key = nil }),
		"HealthOptions.Enlisted[0].Key has 3":      accounts(func(e *EnlistedTable) { e.Key = attributes{"a": str(""), "b": str(""), "c": str("")} }),
		"HealthOptions.Enlisted[0].Actions is":     accounts(func(e *EnlistedTable) { e.Actions = nil }),
		`Enlisted[0].Actions has "Scan"`:           accounts(func(e *EnlistedTable) { e.Actions = []string{"PutItem", "Scan"} }),
	} {
		func() {
			defer func() {
				if said, _ := recover().(string); !strings.Contains(said, says) {
					t.Errorf("panic %q; want %q in it", said, says)
				}
			}()
			NewHealthCheck(s, option)
		}()
	}
	defer func() {
		if said, _ := recover().(string); !strings.Contains(said, "store is nil") {
			t.Errorf("panic %q", said)
		}
	}()
	NewHealthCheck(nil)
}
