package memdynamo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

// rawPair has memdynamo and DynamoDB Local, used without the SDK. Both have a table: it is
// "records" in memdynamo and has another name in DynamoDB Local.
type rawPair struct {
	db       *memdynamo.DB
	endpoint string
	table    string
}

func newRawPair(t *testing.T) *rawPair {
	t.Helper()
	p := &rawPair{
		db:       newDB(t),
		endpoint: ddblocal.ForTest(t).Endpoint(),
		table:    fmt.Sprintf("memdynamo-%s-%d", strings.ToLower(t.Name()), time.Now().UnixNano()),
	}
	p.mustLocal(t.Context(), t, "CreateTable", `{"TableName":"records","BillingMode":"PAY_PER_REQUEST",
		"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],
		"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}]}`)
	t.Cleanup(func() { p.mustLocal(context.WithoutCancel(t.Context()), t, "DeleteTable", `{"TableName":"records"}`) })
	return p
}

// local returns DynamoDB Local's status and reply for a request.
func (p *rawPair) local(ctx context.Context, t *testing.T, op, body string) (int, []byte) {
	t.Helper()
	body = strings.ReplaceAll(body, `"TableName":"records"`, `"TableName":"`+p.table+`"`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.endpoint, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+ddblocal.DummyCredential+"/20300101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=none")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(resp.Body)
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, bytes.ReplaceAll(out, []byte(p.table), []byte("records"))
}

func (p *rawPair) mustLocal(ctx context.Context, t *testing.T, op, body string) []byte {
	t.Helper()
	status, out := p.local(ctx, t, op, body)
	if status != http.StatusOK {
		t.Fatalf("DynamoDB Local, %s %.300s: %d %s", op, body, status, out)
	}
	return out
}

// items returns the items of the table in both databases, by ID, read with Scan.
func (p *rawPair) items(t *testing.T) (fake, local map[string]attributes) {
	t.Helper()
	scan := func(serve func(body string) []byte) map[string]attributes {
		items, start := map[string]attributes{}, ""
		for {
			var page struct{ Items, LastEvaluatedKey json.RawMessage }
			if err := json.Unmarshal(serve(`{"TableName":"records","ConsistentRead":true`+start+`}`), &page); err != nil {
				t.Fatal(err)
			}
			var found []memdynamo.Item
			if err := json.Unmarshal(page.Items, &found); page.Items != nil && err != nil {
				t.Fatal(err)
			}
			maps.Copy(items, byID(found))
			if page.LastEvaluatedKey == nil {
				return items
			}
			start = `,"ExclusiveStartKey":` + string(page.LastEvaluatedKey)
		}
	}
	return scan(func(body string) []byte { return []byte(mustServe(t, p.db, "Scan", body)) }),
		scan(func(body string) []byte { return p.mustLocal(t.Context(), t, "Scan", body) })
}

func byID(items []memdynamo.Item) map[string]attributes {
	out := map[string]attributes{}
	for _, item := range items {
		out[item["id"].Text] = toSDK(item)
	}
	return out
}

// set makes the table contain exactly these items in both databases.
func (p *rawPair) set(t *testing.T, items map[string]attributes) {
	t.Helper()
	fake, local := p.items(t)
	both := func(op, body string) {
		mustServe(t, p.db, op, body)
		p.mustLocal(t.Context(), t, op, body)
	}
	maps.Copy(fake, local)
	for id := range fake {
		if _, ok := items[id]; !ok {
			both("DeleteItem", `{"TableName":"records","Key":{"id":{"S":"`+id+`"}}}`)
		}
	}
	for _, item := range items {
		both("PutItem", `{"TableName":"records","Item":`+show(item)+`}`)
	}
}

// localAnswer returns DynamoDB Local's reply in the form of transactAnswer. It removes a full
// stop that DynamoDB Local adds to one message, only for a ConditionCheck.
func localAnswer(status int, out []byte) string {
	return strings.ReplaceAll(transactAnswer(status, out), conditionMessage+".", conditionMessage)
}

// TestTransactionsDifferential sends the table of transactions to DynamoDB Local. It checks that
// the replies are those in the table, and that the items afterwards are the same as in memdynamo.
func TestTransactionsDifferential(t *testing.T) {
	p := newRawPair(t)
	for _, c := range transactCases {
		p.set(t, map[string]attributes{
			"a": {"id": s("a"), "n": n("1"), "s": s("x")},
			"b": {"id": s("b"), "n": n("2")},
		})
		want := c.local
		if want == "" {
			want = c.want
		}
		if got := localAnswer(p.local(t.Context(), t, "TransactWriteItems", c.body())); got != want {
			t.Errorf("%.400s\nLocal %s\n want %s", c.actions, got, want)
		}
		if c.local != "" {
			continue
		}
		mustMatch := c.want == "ok"
		if status, _, _ := p.db.Serve("TransactWriteItems", []byte(c.body())); (status == http.StatusOK) != mustMatch {
			t.Errorf("%.400s: memdynamo answered %d", c.actions, status)
		}
		if fake, local := p.items(t); !sameItems(fake, local) {
			t.Errorf("%.400s\nleft in memdynamo  %.600s\nleft in Local %.600s", c.actions, showAll(fake), showAll(local))
		}
	}
}

func sameItems(a, b map[string]attributes) bool {
	return maps.EqualFunc(a, b, func(v, w attributes) bool { return show(v) == show(w) })
}

// TestTokensDifferential checks how DynamoDB Local treats a ClientRequestToken.
func TestTokensDifferential(t *testing.T) {
	p := newRawPair(t)
	token := fmt.Sprintf("t-%d", time.Now().UnixNano())
	deletion := `"TransactItems":[{"Delete":{"TableName":"records","Key":{"id":{"S":"a"}},"ConditionExpression":"attribute_exists(id)"}}]`
	known := `"ClientRequestToken":"` + token + `"`
	const mismatch = "400 IdempotentParameterMismatch: "
	steps := []struct {
		body, want string
		local      string // reply of DynamoDB Local, if it differs
	}{
		{`{` + known + `,` + deletion + `}`, "400 canceled: " + conditionMessage, ""}, // this leaves no token
		{`{` + known + `,"TransactItems":[{"Put":{"TableName":"records","Item":{"id":{"S":"a"}}}}]}`, "ok", ""},
		{`{` + known + `,"TransactItems":[{"Put":{"TableName":"records","Item":{"id":{"S":"a"}}}}]}`, "ok", ""},
		{`{` + known + `,` + deletion + `}`, mismatch, ""},
		{`{` + known + `,"TransactItems":[{"Delete":{"TableName":"nowhere","Key":{"id":{"S":"a"}}}}]}`, mismatch, ""},
		{`{` + known + `,"TransactItems":[{"Delete":{"TableName":"records","Key":{"id":{"S":"a"}},"ConditionExpression":"n ="}}]}`,
			`400 Validation: Invalid ConditionExpression: Syntax error; token: "<EOF>", near: "="`, ""},
		// DynamoDB Local compares the meaning of the request, without ReturnConsumedCapacity.
		{`{"TransactItems":[{"Put":{"Item":{"id":{"S":"a"}},"TableName":"records"}}],` + known + `}`, mismatch, "ok"},
		{`{` + known + `,"ReturnConsumedCapacity":"NONE","TransactItems":[{"Put":{"TableName":"records","Item":{"id":{"S":"a"}}}}]}`, mismatch, "ok"},
	}
	for i, step := range steps {
		status, _, out := p.db.Serve("TransactWriteItems", []byte(step.body))
		fake := transactAnswer(status, out)
		if strings.HasPrefix(fake, mismatch) { // DynamoDB Local has no message
			fake = mismatch
		}
		local := localAnswer(p.local(t.Context(), t, "TransactWriteItems", step.body))
		want := step.local
		if want == "" {
			want = step.want
		}
		if fake != step.want || local != want {
			t.Errorf("step %d, %s\nmemdynamo %s\nLocal %s", i, step.body, fake, local)
		}
	}
}

// transaction is a random TransactWriteItems request. In most cases its actions are on different
// items.
type transaction struct {
	ids      []string
	requests []request // PutItem, UpdateItem, DeleteItem; GetItem stands for a ConditionCheck
}

func (g generator) transaction(before map[string]attributes) transaction {
	var tx transaction
	empty := memdynamo.New(time.Now)
	ids := []string{"k0", "k1", "k2", "k3"}
	g.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	for i := range 1 + g.IntN(len(ids)) {
		id := ids[i]
		if i > 0 && g.chance(2) {
			id = ids[0]
		}
		for {
			r := g.request(before[id])
			switch r.op {
			case "GetItem":
				r = request{op: "GetItem", condition: g.condition(2), old: g.chance(50)}
			case "UpdateItem":
				if r.update == nil {
					r.update = g.clauses()
				}
			}
			r.returnValues = ""
			if r.item != nil {
				r.item["id"] = s(id)
			}
			// Leave out half of the conditions. Otherwise hardly any transaction would be
			// applied.
			if r.op != "GetItem" && g.chance(50) {
				r.condition = nil
			}
			// A single invalid action makes DynamoDB refuse the whole transaction, so keep only a
			// few of them.
			status, _, out := empty.Serve("TransactWriteItems", []byte(transaction{[]string{id}, []request{r}}.body()))
			wrong := transactAnswer(status, out) != noTable
			if !knownToDiffer(before[id], r) && (!wrong || g.chance(10)) {
				tx.ids, tx.requests = append(tx.ids, id), append(tx.requests, r)
				break
			}
		}
	}
	return tx
}

// body returns the transaction as a request body.
func (tx transaction) body() string {
	type members struct {
		TableName                           string
		Key                                 *memdynamo.Item   `json:",omitempty"`
		Item                                *memdynamo.Item   `json:",omitempty"`
		UpdateExpression                    string            `json:",omitempty"`
		ConditionExpression                 string            `json:",omitempty"`
		ExpressionAttributeNames            map[string]string `json:",omitempty"`
		ExpressionAttributeValues           memdynamo.Item    `json:",omitempty"`
		ReturnValuesOnConditionCheckFailure string            `json:",omitempty"`
	}
	var actions []map[string]members
	for i, r := range tx.requests {
		m := members{TableName: "records", ExpressionAttributeNames: r.names()}
		kind := map[string]string{"PutItem": "Put", "UpdateItem": "Update", "DeleteItem": "Delete", "GetItem": "ConditionCheck"}[r.op]
		if r.op == "PutItem" {
			item := fromSDK(r.item)
			m.Item = &item
		} else {
			m.Key = &memdynamo.Item{"id": memdynamo.String(tx.ids[i])}
		}
		if r.update != nil {
			m.UpdateExpression = r.updateExpression()
		}
		if r.condition != nil {
			m.ConditionExpression = r.condition.String()
		}
		if values := r.values(); values != nil {
			m.ExpressionAttributeValues = fromSDK(values)
		}
		if r.old {
			m.ReturnValuesOnConditionCheckFailure = "ALL_OLD"
		}
		actions = append(actions, map[string]members{kind: m})
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(map[string]any{"TransactItems": actions, "ReturnConsumedCapacity": "TOTAL"}); err != nil {
		panic(err) // can't happen: everything in it can be encoded
	}
	return out.String()
}

// comparable returns a reply in a form in which known differences don't show. An update that does
// not fit its item cancels the transaction, but DynamoDB Local returns a ValidationException for
// the whole transaction. units reports whether to include consumed units.
func (tx transaction) comparable(status int, out []byte, units bool) string {
	if status == http.StatusOK {
		var e struct {
			ConsumedCapacity []struct{ CapacityUnits float64 }
		}
		if err := json.Unmarshal(out, &e); err != nil || len(e.ConsumedCapacity) != 1 {
			return fmt.Sprintf("unreadable: %s", out)
		}
		if !units {
			return "ok"
		}
		return fmt.Sprintf("ok, %v units", e.ConsumedCapacity[0].CapacityUnits)
	}
	answer := localAnswer(status, out)
	if _, reasons, ok := strings.Cut(answer, " canceled: "); ok {
		for r := range strings.SplitSeq(reasons, " | ") {
			if message, ok := strings.CutPrefix(r, memdynamo.ReasonValidation+": "); ok {
				return "refused: " + worded(message)
			}
		}
		// Show the numbers of an old item in a form that can be compared.
		var e struct {
			CancellationReasons []struct{ Item memdynamo.Item }
		}
		if err := json.Unmarshal(out, &e); err != nil {
			return err.Error()
		}
		var parts []string
		for i, r := range strings.Split(reasons, " | ") {
			code, _, _ := strings.Cut(r, ":")
			if item := e.CancellationReasons[i].Item; item != nil {
				code += " " + show(toSDK(item))
			}
			parts = append(parts, code)
		}
		return "canceled: " + strings.Join(parts, " | ")
	}
	if _, message, ok := strings.Cut(answer, "400 Validation: "); ok {
		return "refused: " + worded(message)
	}
	return answer
}

func (p *rawPair) compare(t *testing.T, tx transaction) (answer string, after map[string]attributes, difference string) {
	t.Helper()
	// DynamoDB Local adds up the sizes of items before it rounds them, ignores the sizes of
	// checked items, and does not double the cost of deleting an absent item.
	_, there := p.db.Item("records", memdynamo.Item{"id": memdynamo.String(tx.ids[0])})
	units := len(tx.requests) == 1 && tx.requests[0].op != "GetItem" && (tx.requests[0].op != "DeleteItem" || there)
	before := p.db.Items("records")
	body := tx.body()
	status, _, out := p.db.Serve("TransactWriteItems", []byte(body))
	answer = tx.comparable(status, out, units)
	status, out = p.local(t.Context(), t, "TransactWriteItems", body)
	theirs := tx.comparable(status, out, units)
	if strings.HasSuffix(answer, twiceOneItem) && !strings.HasPrefix(theirs, "ok") {
		theirs = answer // DynamoDB Local finds a failed condition or update first
	}
	if theirs != answer {
		return answer, nil, fmt.Sprintf("the answer\n  memdynamo %s\n  local %s", answer, theirs)
	}
	if !strings.HasPrefix(answer, "ok") { // a change in DynamoDB Local would show in a later transaction
		if items := p.db.Items("records"); fmt.Sprint(items) != fmt.Sprint(before) {
			return answer, nil, fmt.Sprintf("the items, which a refused transaction changed\n  memdynamo %v\n  was   %v", items, before)
		}
		return answer, byID(before), ""
	}
	fake, local := p.items(t)
	if !sameItems(fake, local) {
		return answer, nil, fmt.Sprintf("the items afterwards\n  memdynamo %v\n  local %v", showAll(fake), showAll(local))
	}
	return answer, fake, ""
}

func showAll(items map[string]attributes) string {
	var lines []string
	for _, id := range slices.Sorted(maps.Keys(items)) {
		lines = append(lines, show(items[id]))
	}
	return strings.Join(lines, "\n        ")
}

// TestRandomTransactionsDifferential does the same as TestDifferential for transactions, with the
// same flags. It has a third as many rounds, with four items each.
func TestRandomTransactionsDifferential(t *testing.T) {
	p := newRawPair(t)
	g := generator{rand.New(rand.NewPCG(*seedFlag, 1))}
	kinds := map[string]int{}
	for range *itemsFlag / 3 {
		before := map[string]attributes{}
		for _, id := range []string{"k0", "k1", "k2", "k3"} {
			if item := g.item(); item != nil {
				item["id"] = s(id)
				before[id] = item
			}
		}
		p.set(t, before)
		for range 6 {
			tx := g.transaction(before)
			answer, after, difference := p.compare(t, tx)
			if difference != "" {
				tx, difference = p.shrink(t, before, tx, difference)
				t.Fatalf("seed %d: memdynamo and DynamoDB Local differ in %s\nitems before\n        %s\n%s", *seedFlag, difference, showAll(before), tx.body())
			}
			kind, _, _ := strings.Cut(answer, ":")
			kind, _, _ = strings.Cut(kind, ",")
			switch {
			case strings.HasSuffix(answer, twiceOneItem):
				kind = "twice one item"
			case strings.Contains(answer, "does not fit"):
				kind = "an update does not fit"
			case strings.Count(answer, memdynamo.ReasonConditionalCheckFailed) > 1:
				kind = "canceled for several conditions"
			case kind == "ok" && len(tx.requests) > 1:
				kind = "several applied"
			}
			kinds[kind]++
			before = after
		}
	}
	t.Logf("seed %d: %v", *seedFlag, kinds)
	for _, kind := range []string{"ok", "several applied", "canceled", "canceled for several conditions", "refused", "an update does not fit", "twice one item"} {
		if kinds[kind] == 0 {
			t.Errorf("the generator made no transaction of the kind %q", kind)
		}
	}
}

// shrink returns a smaller transaction that still differs, as small as it can find.
func (p *rawPair) shrink(t *testing.T, before map[string]attributes, tx transaction, difference string) (transaction, string) {
	t.Helper()
	for smaller := true; smaller; {
		smaller = false
		var candidates []transaction
		for i, r := range tx.requests {
			if len(tx.requests) > 1 {
				candidates = append(candidates, transaction{
					slices.Delete(slices.Clone(tx.ids), i, i+1), slices.Delete(slices.Clone(tx.requests), i, i+1),
				})
			}
			for _, less := range smallerRequests(r) {
				if less.op == "GetItem" && less.condition == nil || knownToDiffer(before[tx.ids[i]], less) {
					continue
				}
				requests := slices.Clone(tx.requests)
				requests[i] = less
				candidates = append(candidates, transaction{tx.ids, requests})
			}
		}
		for _, candidate := range candidates {
			p.set(t, before)
			if _, _, d := p.compare(t, candidate); d != "" {
				tx, difference, smaller = candidate, d, true
				break
			}
		}
	}
	return tx, difference
}
