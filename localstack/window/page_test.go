package window_test

import (
	"html"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/internal/sequence"
	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/rehearsal"
	"github.com/lambdaidem/toolkit/localstack/stack"
	"github.com/lambdaidem/toolkit/localstack/window"
)

// payment returns the form of a payment under a key.
func payment(key string) string { return `{"sample":"payment","key":"` + key + `"}` }

// Each story shows what its explanation speaks of, and sums its key up; the browser tests play
// the one in which a process dies.
func TestStories_ShowWhatTheyExplain(t *testing.T) {
	_, page := running(t)
	for _, story := range []struct {
		id    string
		lines []string
		look  string
		sum   string
	}{
		{"twice", []string{
			`^client to payments, process \d+: POST /payments, key twice-\d+$`,
			`payments, process \d+ to DynamoDB: PutItem: locks the record \(only if there is none that is valid\) \[in progress\]$`,
			`DynamoDB to payments, process \d+: done: this attempt has the lock$`,
			`^payments, process \d+: runs the handler$`,
			`TransactWriteItems: stores the answer \(only if this attempt still has the lock\), with 2 effects of the handler, all or nothing \[completed\]$`,
			`payments, process \d+ to client: 201 Created \(lost\)$`,
			`client to payments, process \d+: POST /payments, key twice-\d+$`,
			`PutItem: locks the record \(only if there is none that is valid\)$`,
			`refused, because there is a record: it is completed`,
			`to client: 201 Created: the first answer again, the handler did not run$`,
		}, "done twice", once},
		{"lock", []string{
			`locks the record .* \[in progress\]$`,
			`DynamoDB to payments, process \d+: the reply does not arrive.*\(lost\)$`,
			`locks the record \(only if there is none that is valid\)$`,
			`this attempt's own token, so this attempt has the lock$`,
			`^payments, process \d+: runs the handler$`,
			`stores the answer .* \[completed\]$`,
			`to client: 201 Created$`,
		}, "token of this very attempt", once},
		{"completion", []string{
			`runs the handler$`,
			`stores the answer .* all or nothing \[completed\]$`,
			`the reply does not arrive.*\(lost\)$`,
			`stores the answer .*; the same request again, with the same ClientRequestToken$`,
			`done already: DynamoDB recognizes the ClientRequestToken, and writes nothing again$`,
			`to client: 201 Created$`,
		}, "the effects happen once.*for 10 minutes", once},
		{"late", []string{
			`runs the handler$`,
			`^world: the network holds up the request`,
			`try 2 of the same write, because no reply came for \d+\.\d s \(lost\)$`,
			`to client: 503 idempotency_outcome_unknown`,
			`^world: the request that was held up arrives`,
			`^world to DynamoDB: TransactWriteItems: stores the answer`,
			`refused, because another attempt has the record now: nothing is written; but nobody waits for this reply any more: the process has (given up|ended) \(lost\)$`,
		}, "with all its effects.*would have counted", `the handler ran twice, 12.50 EUR were charged once.`},
		{"fifty", []string{
			`locks the record .* \[in progress\]$`,
			`runs the handler$`,
			`stores the answer .* \[completed\]$`,
			`^client: 50 requests: 1 got the handler's answer, \d+ the stored answer, \d+ were told to come back later$`,
		}, "^50 requests: 1 got the handler's answer.* At most 4 processes run at once", once},
		{"other", []string{
			`to client: 201 Created$`,
			`refused, because there is a record: it is completed, and its fingerprint is that of another body$`,
			`to client: 422 idempotency_payload_mismatch$`,
		}, "fingerprint", once},
	} {
		t.Run(story.id, func(t *testing.T) {
			do(t, page, "/story/"+story.id, payment("order-1"))
			v := until(t, page, "", idle)
			lines := v.lines()
			expect(t, lines, story.lines...)
			if !regexp.MustCompile(story.look).MatchString(v.state.Look) || strings.Contains(v.state.Look, "not go as planned") {
				t.Errorf("it says to look for %q; want %q in it", v.state.Look, story.look)
			}
			if !regexp.MustCompile(`^Key `+story.id+`-\d+ of POST /payments: `).MatchString(v.state.Sum) || !strings.Contains(v.state.Sum, ": "+story.sum+" ") {
				t.Errorf("it sums up: %q; want %q", v.state.Sum, story.sum)
			}
			if n := matching(lines, `\[completed\]$`); n != 1 {
				t.Errorf("%d rows store an answer:\n%s", n, strings.Join(lines, "\n"))
			}
			if len(v.state.Armed) > 0 {
				t.Errorf("faults are left: %q", v.state.Armed)
			}
			without(t, lines, "receipts|notifications")
		})
	}
}

// once is how a key is summed up whose payment was made by one run of the handler.
const once = "the handler ran once, 12.50 EUR were charged once."

// leaseEnds matches the end of a lease. It does not change while time passes.
const leaseEnds = `^\d\d:\d\d:\d\d\.\d{3} \S+, at \d\.\d{3} s of the diagram$`

// The record is shown decoded.
func TestRecord_IsDecoded(t *testing.T) {
	_, page := running(t)
	do(t, page, "/story/other", `{"sample":"transfer","policy":"hold"}`) // a story is about a payment
	v := until(t, page, "", idle)
	for state, want := range map[sequence.State][]string{
		sequence.InProgress: {"attempt=^1$", `lease ends=` + leaseEnds, `token=^\S{22}$`, `fingerprint=^\S+$`, `scope=^PaymentsFunction POST /payments `},
		sequence.Completed:  {"attempt=^1$", `lease ends=` + leaseEnds, "outcome=^succeeded$", `answer=^201 \{"id":"pay_`, `expires=^\d{4}-.* [A-Z]+$`, "id=^lambdaidem#"},
	} {
		i := slices.IndexFunc(v.events, func(e sequence.Event) bool { return e.Record != nil && e.Record.State == state })
		if i < 0 {
			t.Fatalf("no record is %s", state)
		}
		record := v.events[i].Record
		for _, field := range want {
			name, pattern, _ := strings.Cut(field, "=")
			j := slices.IndexFunc(record.Fields, func(f sequence.Field) bool { return f.Name == name })
			if j < 0 || !regexp.MustCompile(pattern).MatchString(record.Fields[j].Value) {
				t.Errorf("%s: the fields are %+v; want %s", state, record.Fields, field)
			}
		}
	}
}

// A row shows the record as this row's write has left it, and no record if another attempt
// has changed it before the window has read it.
func TestRecord_IsThatOfTheRow(t *testing.T) {
	_, page := running(t)
	w, err := start()
	if err != nil {
		t.Fatal(err)
	}
	afterWrite(t, rehearsal.Lock, func(a rehearsal.Access) {
		setToken(t, w.stack, a.Table, a.Record)
	})
	do(t, page, "/clear", "")
	do(t, page, "/send", `{"sample":"payment","key":"changed-1"}`)
	lines := until(t, page, "", idle).lines()
	expect(t, lines, `locks the record \(only if there is none that is valid\)$`, `stores the answer .* all or nothing$`, `refused, because another attempt has the record now`, `to client: 409`)
}

// The requests to DynamoDB, and its replies, are shown with names and values in place of
// placeholders.
func TestDatabase_IsShownInShort(t *testing.T) {
	_, page := running(t)
	do(t, page, "/story/other", payment("order-1"))
	v := until(t, page, "", idle)
	for row, want := range map[string]string{
		`locks the record`:  `^PutItem in \S*IdempotencyTable\S*\nonly if attribute_not_exists\(id\) OR \(attribute_exists\(token\) AND .*\nitem \{attempt: 1, .*, status: "INPROGRESS", token: "`,
		`stores the answer`: `(?s)^ClientRequestToken \S+\n\nUpdate in \S*\nkey \{id: "lambdaidem#.*\nonly if token = "\S+" AND status = "INPROGRESS" AND .*\nSET status = "COMPLETED", .*\n\nPut in \S*PaymentsTable.*\nitem \{amount: 1250, .*\n\nUpdate in .*\nonly if balance >= 1250\nSET balance = balance - 1250$`,
		`refused, because there is a record: it is completed, and its fingerprint is that of another body`: `(?s)^The conditional request failed\nthe item as it is: \{attempt: 1, .*status: "COMPLETED"`,
		`201 Created`:         `(?s)^Content-Type: application/json\nLocation: .*\n\n\{"id":"pay_`,
		`POST /payments, key`: `(?s)^Authorization: Bearer [^.]+…\nContent-Type: application/json\nIdempotency-Key: other-\d+\n\n\{"amount":1250,`,
	} {
		i := slices.IndexFunc(v.events, func(e sequence.Event) bool { return strings.Contains(e.Text, row) })
		if i < 0 || !regexp.MustCompile(want).MatchString(v.events[i].Detail) {
			t.Fatalf("%s: row %d of\n%s\nhas another detail than %s:\n%s", row, i, strings.Join(v.lines(), "\n"), want, v.events[max(i, 0)].Detail)
		}
	}
}

// What is lost after the answer is stored is lost on the way: the client of the page hangs up.
func TestFaults_StrikeOnceAndSayWhatToLookFor(t *testing.T) {
	_, page := running(t)
	for _, fault := range []struct {
		name  string
		lines []string
		look  string
	}{
		{"kill", []string{`runs the handler$`, `process \d+: has run the handler, and dies before the write that stores the answer leaves it$`, `is killed`, `^Lambda to client: 500`}, "locked by a process that is dead"},
		{"lock", []string{`the reply does not arrive.*\(lost\)$`, `own token`, `to client: 201 Created$`}, "own token"},
		{"completion", []string{`stores the answer .* \[completed\]$`, `the reply does not arrive.*\(lost\)$`, `stores the answer`, `to client: 201 Created$`}, "wrote nothing again"},
		{"response", []string{`to client: 201 Created \(lost\)$`}, "in the record"},
	} {
		t.Run(fault.name, func(t *testing.T) {
			do(t, page, "/clear", "")
			do(t, page, "/fault/"+fault.name, "")
			until(t, page, "", func(v *view) bool { return slices.Equal(v.state.Armed, []string{fault.name}) })
			do(t, page, "/fault/"+fault.name, "")
			until(t, page, "", func(v *view) bool { return len(v.state.Armed) == 0 })
			do(t, page, "/fault/"+fault.name, "")
			do(t, page, "/send", `{"sample":"payment","key":"fault-`+fault.name+`"}`)
			v := until(t, page, "", idle)
			expect(t, v.lines(), fault.lines...)
			if !strings.Contains(v.state.Look, fault.look) || len(v.state.Armed) > 0 {
				t.Errorf("it says to look for %q; want %q in it. Armed: %q", v.state.Look, fault.look, v.state.Armed)
			}
		})
	}
	if status, text := call(t, http.MethodPost, page+"/fault/flood", ""); status != http.StatusOK || !strings.Contains(text, `"kill"`) {
		t.Errorf("an unknown fault: %d %s", status, text)
	}
}

// Under policy hold, a record whose attempt died waits for an operator. Under policy rerun, the
// next attempt takes it over, and a completion of the first one that arrives later changes nothing.
func TestLeases_AreHeldOrTakenOver(t *testing.T) {
	api, page := running(t)
	do(t, page, "/clear", "")
	for _, body := range []string{payment("raced-1"), payment("dead-1"), `{"sample":"transfer","policy":"hold","key":"held-1"}`} {
		do(t, page, "/fault/kill", "")
		do(t, page, "/send", body)
		until(t, page, "", idle)
	}
	overtake(t, page, "key raced-1 of POST /payments")
	do(t, page, "/fault/late", "")
	var other sync.WaitGroup // another client, whose request the page repeats
	defer other.Wait()
	other.Go(func() {
		call(t, http.MethodPost, api+"/payments", `{"amount":1,"currency":"EUR"}`, "Authorization", "Bearer "+stack.Token("alice"),
			"Idempotency-Key", "raced-2", "Content-Type", "application/json", "Host", "api.invalid") // it is repeated all the same
	})
	until(t, page, "", func(v *view) bool { return v.state.Waiting != "" && v.state.Until > time.Now().UnixMilli() })
	v := until(t, page, "", func(v *view) bool { return idle(v) && len(v.state.Armed) == 0 })
	expect(t, v.lines(),
		`locks the record .* \[in progress\]$`,
		`^world: the network holds up the request`,
		`to another client: 503 idempotency_outcome_unknown: retry after`,
		`^world: the lease of key raced-2 of POST /payments is over: the record is dead, and the next request takes it over\. It has not changed$`,
		`refused, because there is a record: an earlier attempt left it, and its lease is over$`,
		`takes the record over .* \[in progress\]$`,
		`runs the handler again`,
		`stores the answer .* \[completed\]$`,
		`to client: 201 Created$`,
		`^world: the request that was held up arrives`,
		`stores the answer \(only if this attempt still has the lock\), with 2 effects of the handler, all or nothing$`,
		`refused, because another attempt has the record now: nothing is written; but nobody waits for this reply any more.* \(lost\)$`,
	)
	if !strings.Contains(v.state.Look, "another attempt had the record") || !strings.HasPrefix(v.state.Sum, "Key raced-2 of POST /payments: the handler ran twice, 0.01 EUR were charged once. ") {
		t.Errorf("it says to look for %q, and %q", v.state.Look, v.state.Sum)
	}
	do(t, page, "/send", payment("dead-1"))
	v = until(t, page, "", func(v *view) bool { return idle(v) && strings.Contains(v.state.Look, "takes the record over") })
	if !strings.HasPrefix(v.state.Sum, "Key dead-1 of POST /payments: the handler ran twice, 12.50 EUR were charged once. ") {
		t.Errorf("it sums up: %q", v.state.Sum)
	}
	do(t, page, "/send", `{"sample":"transfer","policy":"hold","key":"held-1"}`)
	v = until(t, page, "", func(v *view) bool { return idle(v) && matching(v.lines(), "to client: 409") == 1 })
	expect(t, v.lines(),
		`^client to transfers, process \d+: POST /transfers, key held-1$`,
		`stores the result of the step clear`,
		`is killed`,
		`^world: the lease of key held-1 of POST /transfers is over: the record is held, and waits for an operator, because of policy hold\.`,
		`refused, because there is a record: it is held, and waits for an operator$`,
		`to client: 409 idempotency_attempt_abandoned`)
	if !strings.Contains(v.state.Look, "policy hold") {
		t.Errorf("it says to look for %q", v.state.Look)
	}
	if n := matching(v.lines(), "the lease of key raced-1 of POST /payments is over: the record is dead"); n != 1 {
		t.Errorf("%d rows show the end of a lease whose record the next attempt has taken over at once", n)
	}
}

// overtake gives a record another token, like an attempt that takes it over the moment its
// lease ends.
func overtake(t *testing.T, page, title string) {
	t.Helper()
	v := until(t, page, "", idle)
	i := slices.IndexFunc(v.events, func(e sequence.Event) bool { return e.Record != nil && e.Record.Title == title })
	if i < 0 {
		t.Fatalf("no record of %s", title)
	}
	w, err := start()
	if err != nil {
		t.Fatal(err)
	}
	setToken(t, w.stack, w.stack.Table("IdempotencyTable"), v.events[i].Record.ID)
}

// setToken has a record say that another attempt has it.
func setToken(t *testing.T, s *stack.Stack, table, record string) {
	t.Helper()
	_, err := s.Database().Client().UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &table, Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: record}},
		UpdateExpression:          aws.String("SET #token = :token"),
		ExpressionAttributeNames:  map[string]string{"#token": "token"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":token": &types.AttributeValueMemberS{Value: "another"}},
	})
	if err != nil {
		t.Error(err)
	}
}

// The page shows a command that another client can send, and says what its words mean.
func TestPage_ShowsACurlCommandAndMeanings(t *testing.T) {
	api, page := running(t)
	w, err := start()
	if err != nil {
		t.Fatal(err)
	}
	_, text := call(t, http.MethodGet, page, "")
	text = html.UnescapeString(text)
	for _, want := range []string{
		"curl -i -X POST '" + api + "/payments'", "-H 'Authorization: Bearer " + stack.Token("alice") + "'", "-H 'Idempotency-Key: curl-1'",
		`-d '{"amount":1250,"currency":"EUR"}'`, "<dt>lease</dt>", "<dt>token</dt>", "<dt>fingerprint</dt>", "<dt>policy</dt>", "<dt>ClientRequestToken</dt>",
		"export IDEM_TABLE=" + w.stack.Table("IdempotencyTable") + "\nidem leases --lease-index ", "\nidem release RECORD --token TOKEN ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

// The rest of a person's requests: a refund, a transfer, repeats.
func TestSamples_RefundTransferAndRepeats(t *testing.T) {
	_, page := running(t)
	do(t, page, "/clear", "")
	lockFault := func() { do(t, page, "/fault/lock", "") }
	responseFault := func() { do(t, page, "/fault/response", "") }
	steps := []struct {
		before              func()
		command, body, want string
		look                string
	}{
		{nil, "/send", `{"sample":"payment","key":"sample-1"}`, `to client: 201 Created$`, "There was no record"},
		{nil, "/repeat", "", `to client: 201 Created: the first answer again`, "does not run again.$"},
		{nil, "/repeat?times=50", "", `client: 50 requests: 0 got the handler's answer, 50 the stored answer`, "^50 requests: 0 .* no handler ran"},
		{nil, "/repeat?body=other", "", `to client: 422 idempotency_payload_mismatch`, "fingerprint"},
		{responseFault, "/repeat?body=other", "", `to client: 422 idempotency_payload_mismatch \(lost\)$`, "fingerprint.*the client knows nothing of this"},
		{lockFault, "/repeat", "", `the reply does not arrive`, "record is completed.*there was nothing left to lock"},
		{nil, "/send", `{"sample":"payment","key":""}`, `to client: 400 idempotency_key_missing`, "no idempotency key"},
		{nil, "/send", `{"sample":"refund","key":"sample-2"}`, `^refunds, process \d+ to client: 201 Created$`, "There was no record"},
		{nil, "/send", `{"sample":"transfer","key":"sample-3"}`, `^transfers, process \d+ to client: 201 Created$`, "There was no record"},
	}
	for _, step := range steps {
		if step.before != nil {
			step.before()
		}
		do(t, page, step.command, step.body)
		v := until(t, page, "", func(v *view) bool { return idle(v) && matching(v.lines(), step.want) > 0 })
		if !regexp.MustCompile(step.look).MatchString(v.state.Look) {
			t.Errorf("%s %s: it says to look for %q; want %q", step.command, step.body, v.state.Look, step.look)
		}
	}
	for body, want := range map[string]string{`{"sample":"x"}`: "there is no sample", `{`: "read the form", `{"route":99}`: "choose a route"} {
		if status, text := call(t, http.MethodPost, page+"/send", body); status != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s; want %q", body, status, text, want)
		}
	}
	if status, text := call(t, http.MethodPost, page+"/story/none", payment("order-1")); status != http.StatusOK || !strings.Contains(text, "no story") {
		t.Errorf("an unknown story: %d %s", status, text)
	}
}

// Beside what was paid, refunded or transferred, the page says how much the account has.
func TestSum_SaysWhatBecameOfTheMoney(t *testing.T) {
	_, page := running(t)
	do(t, page, "/clear", "")
	balance := regexp.MustCompile(` alice has (\d+)\.(\d\d) EUR\.$`)
	before := 0
	for _, step := range []struct {
		fault, body, sum string
		change           int // in cents
	}{
		{"", payment("money-1"), "the handler ran once, 12.50 EUR were charged once.", -1250},
		{"", payment("money-1"), "the handler ran once, 12.50 EUR were charged once.", 0},
		{"completion", `{"sample":"refund","key":"money-2"}`, "the handler ran once, 4.00 EUR were refunded once.", 400},
		{"", `{"sample":"transfer","key":"money-3"}`, "the handler ran once, 5.00 EUR were transferred once.", -500},
		{"kill", `{"sample":"transfer","key":"money-4"}`, "the handler ran once, 5.00 EUR were reserved once, for a transfer that has not ended.", -500},
		{"kill", payment("money-5"), "the handler ran once, nothing was charged.", 0},
	} {
		if step.fault != "" {
			do(t, page, "/fault/"+step.fault, "")
		}
		do(t, page, "/send", step.body)
		sum := until(t, page, "", idle).state.Sum
		digits := balance.FindStringSubmatch(sum)
		if digits == nil || !strings.Contains(sum, ": "+step.sum+" ") {
			t.Fatalf("%s: it sums up: %q; want %q, and what alice has", step.body, sum, step.sum)
		}
		now, err := strconv.Atoi(digits[1] + digits[2])
		if err != nil || before != 0 && now-before != step.change {
			t.Errorf("%s: the account changed from %d to %d cents; want a change of %d", step.body, before, now, step.change)
		}
		before = now
	}
}

// The same key on another route has another record. The sum and the rows say which.
func TestSum_NamesTheRoute(t *testing.T) {
	_, page := running(t)
	do(t, page, "/clear", "")
	for sample, want := range map[string]string{
		"payment": "Key route-1 of POST /payments: the handler ran once, ", "refund": "Key route-1 of POST /payments/{id}/refunds: the handler ran once, ",
	} {
		if sample == "refund" {
			do(t, page, "/send", payment("route-0"))
			until(t, page, "", idle)
		}
		do(t, page, "/send", `{"sample":"`+sample+`","key":"route-1"}`)
		v := until(t, page, "", idle)
		title := strings.Replace(strings.Split(want, ":")[0], "Key", "key", 1)
		if !strings.HasPrefix(v.state.Sum, want) || !slices.ContainsFunc(v.events, func(e sequence.Event) bool { return e.Record != nil && e.Record.Title == title }) {
			t.Errorf("it sums up %q; want %q, and a record of %q", v.state.Sum, want, title)
		}
	}
}

// A cleared page says nothing of what it no longer shows. It clears and sends nothing during a story.
func TestClear_ForgetsTheCaption(t *testing.T) {
	_, page := running(t)
	do(t, page, "/send", payment("cleared-1"))
	until(t, page, "", idle)
	do(t, page, "/clear", "")
	if v := until(t, page, "", func(*view) bool { return true }); v.state.Look != "" || v.state.Sum != "" {
		t.Errorf("a cleared page says to look for %q, and sums up %q", v.state.Look, v.state.Sum)
	}
}

// What another program sends is shown too, with what the gateway answers by itself.
func TestWindow_ShowsWhatOthersSend(t *testing.T) {
	api, page := running(t)
	do(t, page, "/clear", "")
	status, text := call(t, http.MethodPost, api+"/payments", `{"amount":1,"currency":"EUR"}`,
		"Authorization", "Bearer "+stack.Token("alice"), "Idempotency-Key", "curl-1", "Content-Type", "application/json")
	if status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	call(t, http.MethodGet, api+"/nowhere", "")
	do(t, page, "/clear", "")
	call(t, http.MethodGet, api+"/nowhere", "")
	v := until(t, page, "", func(v *view) bool { return len(v.events) > 1 })
	if v.events[0].At != 0 {
		t.Errorf("a new diagram begins at %v", v.events[0].At)
	}
	expect(t, v.lines(), `^another client to Lambda: GET /nowhere$`, `^Lambda to another client: 404 Not Found$`)
}

// Only this machine's own page controls the window.
func TestPage_IsProtectedAgainstOtherPages(t *testing.T) {
	_, page := running(t)
	host := strings.TrimPrefix(page, "http://")
	_, port, _ := strings.Cut(host, ":")
	for name, test := range map[string]struct {
		method, path string
		header       []string
		status       int
	}{
		"the page":                      {"GET", "/", nil, 200},
		"by its other name":             {"GET", "/", []string{"Host", "localhost:" + port}, 200},
		"another host (DNS rebinding)":  {"GET", "/", []string{"Host", "evil.example:" + port}, 421},
		"another host, the events":      {"GET", "/events", []string{"Host", "evil.example:" + port}, 421},
		"another port":                  {"GET", "/", []string{"Host", "127.0.0.1:1"}, 421},
		"another page's form":           {"POST", "/clear", []string{"Origin", "http://evil.example"}, 403},
		"another page, by fetch":        {"POST", "/clear", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		"another page on this machine":  {"POST", "/clear", []string{"Origin", "http://127.0.0.1:1"}, 403},
		"its own form":                  {"POST", "/clear", []string{"Origin", page, "Sec-Fetch-Site", "same-origin"}, 204},
		"a command by GET":              {"GET", "/clear", nil, 405},
		"what is not there":             {"GET", "/secret", nil, 404},
		"a file of the package, unread": {"GET", "/page.html", nil, 404},
	} {
		t.Run(name, func(t *testing.T) {
			if status, text := call(t, test.method, page+test.path, "", test.header...); status != test.status {
				t.Errorf("%d %s; want %d", status, text, test.status)
			}
		})
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if policy := resp.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; script-src 'self';") || !strings.Contains(policy, "frame-ancestors 'none'") {
		t.Errorf("the Content-Security-Policy is %q", policy)
	}
}

// A page that comes back gets what it has missed, and no more.
func TestEvents_ResumeWhereThePageLeftOff(t *testing.T) {
	api, page := running(t)
	some := func(v *view) bool { return len(v.events) > 0 }
	do(t, page, "/clear", "")
	call(t, http.MethodGet, api+"/first", "")
	first := until(t, page, "", some)
	call(t, http.MethodGet, api+"/second", "")
	if v := until(t, page, first.lastID, func(*view) bool { return true }); v.cleared > 0 || matching(v.lines(), "GET /first") > 0 || matching(v.lines(), "GET /second") != 1 {
		t.Errorf("a page that comes back gets %q, after %d clears", v.lines(), v.cleared)
	}
	for name, id := range map[string]string{"another run's": "ABCDEFGH-1", "none": ""} {
		if v := until(t, page, id, some); matching(v.lines(), "GET /first") != 1 || matching(v.lines(), "GET /second") != 1 || id != "" && v.cleared != 1 {
			t.Errorf("after the id %s: %q, after %d clears", name, v.lines(), v.cleared)
		}
	}
	do(t, page, "/clear", "")
	if v := until(t, page, first.lastID, func(*view) bool { return true }); v.cleared != 1 || len(v.events) > 0 {
		t.Errorf("after a clear: %q, after %d clears", v.lines(), v.cleared)
	}
}

// However much happens, the window keeps a bounded part of it.
func TestEvents_AreBounded(t *testing.T) {
	api, page := running(t)
	do(t, page, "/clear", "")
	call(t, http.MethodPost, api+"/payments", `{"amount":1,"currency":"EUR"}`, "Authorization", "Bearer "+stack.Token("alice"),
		"Idempotency-Key", "bound-1", "Content-Type", "application/json")
	before := until(t, page, "", func(v *view) bool { return len(v.events) > 0 })
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	large := strings.Repeat("x", 100_000)
	const sent = 1500 // two events each
	for i := range sent {
		body := ""
		if i == sent-1 {
			body = large
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, api+"/nowhere", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	v := until(t, page, "", func(*view) bool { return true })
	if n := len(v.events); n < 1000 || n > 2500 {
		t.Errorf("%d events are kept of %d", n, 2*sent)
	}
	if open := until(t, page, before.lastID, func(*view) bool { return true }); open.cleared != 1 || len(open.events) != len(v.events) {
		t.Errorf("a page that was open before is cleared %d times, and then shows %d events", open.cleared, len(open.events))
	}
	for _, name := range v.parties {
		if strings.HasPrefix(name, "payments") {
			t.Errorf("a party that no event names is kept: %s", name)
		}
	}
	for _, e := range v.events {
		if len(e.Detail) > 5000 {
			t.Errorf("a detail of %d bytes is kept", len(e.Detail))
		}
	}
}

// Close ends stories in the middle, and the messages to open pages.
func TestClose_EndsStoriesAndPages(t *testing.T) {
	running(t)
	w, err := start()
	if err != nil {
		t.Fatal(err)
	}
	another := window.New(&rehearsal.Faults{})
	page, err := another.Serve(w.stack, 0)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it is read to its end
	do(t, page, "/story/fifty", payment("order-1"))
	for range 2 {
		if err := another.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Errorf("an open page ends by %v; want an orderly end", err)
	}
	if _, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(page, "http://")); err == nil {
		t.Error("the page is served after Close")
	}
	// The functions still have requests of the story. Other tests count on processes without any.
	busy := func(p emulator.Process) bool { return p.State != emulator.Idle }
	for deadline := time.Now().Add(20 * time.Second); slices.ContainsFunc(w.stack.Emulator().Processes("PaymentsFunction"), busy); {
		if time.Now().After(deadline) {
			t.Fatal("the functions still have requests")
		}
	}
}
