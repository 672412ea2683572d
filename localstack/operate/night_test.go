package operate_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// TestD2_OperateMD_SolvesEachCase causes each incident of the page and follows the page until the
// incident is over. The order differs from the page's where a case has to wait for a lease to
// end.
func TestD2_OperateMD_SolvesEachCase(t *testing.T) {
	w := openWorld(t)
	died := w.crash(t)
	t.Run("names", w.names)
	t.Run("throttles", w.throttles)
	t.Run("out of reach", w.outOfReach)
	t.Run("TTL", w.ttlWasOff)
	t.Run("stuck", func(t *testing.T) { w.stuck(t, died) })
	w.copyTable(t)
	slow := w.sendAside(t, payment("alice", "order-11", "X-Demo-Hang-Attempts", "1"))
	t.Run("held", func(t *testing.T) { w.held(t, died) })
	t.Run("restored", w.restored)
	locked := w.loseALock(t)
	t.Run("erased", w.erased)
	t.Run("slow", func(t *testing.T) { w.tooSlow(t, slow) })
	t.Run("held by an outage", func(t *testing.T) { w.heldByAnOutage(t, locked) })
	t.Run("a failed condition", w.conditionFailed)
	t.Run("a failing handler", w.handlerFails)
	t.Run("a lost answer", w.answerLost)
	t.Run("a failing message", w.messageFails)
	t.Run("afterwards", w.afterwards)
	if *update {
		w.page.write(t)
	}
	for _, title := range w.page.titles {
		blocks := len(console.FindAllString(w.page.text[title], -1))
		if title != setUpTitle { // every shell has the installed commands and the exports of that section
			blocks += len(script.FindAllString(w.page.text[title], -1))
		}
		if blocks > 0 && !w.opened[title] {
			t.Errorf("%q has commands, and nobody has run them", title)
		}
	}
}

// casualties maps a key to the request whose attempt died.
type casualties map[string]request

// crash makes the attempts of four transfers die, three of them under policy Hold. The attempts of
// transfer-17, 19 and 20 die after they have called the clearing house. The attempt of transfer-18
// dies before.
func (w *world) crash(t *testing.T) casualties {
	t.Helper()
	w.send(t, transfer("transfer-1", "warm")).expect(t, http.StatusCreated, false, "tra_") // the database is slow at first
	all := casualties{}
	for _, r := range []request{
		transfer("transfer-17", "deposit", "X-Demo-Crash", "cleared", "X-Demo-Policy", "hold"),
		transfer("transfer-18", "rent", "X-Demo-Crash", "reserved", "X-Demo-Policy", "hold"),
		transfer("transfer-19", "gift", "X-Demo-Crash", "cleared", "X-Demo-Policy", "hold"),
		transfer("transfer-20", "loan", "X-Demo-Crash", "cleared"),
	} {
		w.send(t, r).expect(t, http.StatusInternalServerError, false, "Internal Server Error")
		all[r.key] = r
	}
	if strings.Contains(w.log(t), "Task timed out") {
		t.Fatal("the machine is too slow for this test: attempts ended before they could die where they should")
	}
	return all
}

// effects returns the number of calls that the clearing house received with a downstream key.
func (w *world) effects(key string) int {
	e, there := w.stack.Clearing().Effects()[key]
	if !there {
		return 0
	}
	return e.Calls
}

// stuck checks that the page's commands find a stuck request by the data that its customer has, and
// among the dead leases, and that they show each state of the page's table as the page says.
func (w *world) stuck(t *testing.T, died casualties) {
	r := w.read(t, "A payment is stuck")
	r.shell.await("idem leases", "lambdaidem#", len(died))
	seen := r.block()
	if want := "held: "; !strings.Contains(seen, want) {
		t.Errorf("the page shows no held record: %s", seen)
	}
	w.findsKey(t, r, died["transfer-17"])
	listed := r.block()
	if strings.Count(listed, "  held  ") != 3 || strings.Count(listed, "  dead  ") != 1 {
		t.Errorf("the page lists not what died: %s", listed)
	}
	w.states(t, r.shell, died)
	if over := r.block(); !strings.Contains(over, "completed: ") || !strings.Contains(over, "attempt      2") {
		t.Errorf("the retry that took over is not shown: %s", over)
	}
}

// findsKey checks that an operator who has only the client's key finds the record by the hash of
// the key. The guard logs the hash when it refuses a retry because the attempt died. If it
// refuses a retry because an attempt is running, only the line of metrics names the record.
func (w *world) findsKey(t *testing.T, r *reader, held request) {
	t.Helper()
	w.send(t, held.again()).expect(t, http.StatusConflict, false, "idempotency_attempt_abandoned")
	found := r.block()
	hash, _, _ := strings.Cut(found, "\n")
	if !strings.Contains(found, `|alice"`) {
		t.Errorf("the caller is not found: %s", found)
	}
	query := strings.ReplaceAll(savedQuery(t, "find a key"), "HASH", hash)
	for _, line := range w.find(t, query) {
		if line["record"] != aRecord.FindString(found) || line["scope"] == "" {
			t.Errorf("the query finds %v; the commands %s", line, found)
		}
	}

	running := payment("bob", "order-4")
	w.whileRunning(t, running, func() {
		w.send(t, running).expect(t, http.StatusConflict, false, "idempotency_in_progress")
	})
	w.findsRecord(t, "repeated requests", aRecord.FindString(r.shell.must("%s", showCommand(running))))
}

// held checks the page's section about held records: it settles one of three, releases another,
// and ends the third without an answer.
func (w *world) held(t *testing.T, died casualties) {
	for _, key := range []string{"transfer-17", "transfer-18", "transfer-19"} {
		w.send(t, died[key].again()).expect(t, http.StatusConflict, false, "idempotency_attempt_abandoned")
	}
	r := w.read(t, "A key is held")

	key := downstreamKey(t, r.block())
	if n := w.effects(key); n != 1 {
		t.Errorf("the clearing house was asked %d times under the key %s that idem shows", n, key)
	}
	before := w.balanceOfBob(t)
	r.block() // complete the transfer by hand
	if got := w.balanceOfBob(t); got != before+700 {
		t.Errorf("the recipient had %d, and has %d; want 700 more", before, got)
	}
	r.block() // settle
	given := w.send(t, died["transfer-17"].again())
	given.expect(t, http.StatusCreated, true, `"amount":700`)
	if n := w.effects(key); n != 1 {
		t.Errorf("settled, it ran again: the clearing house was asked %d times", n)
	}

	key = downstreamKey(t, r.block())
	if n := w.effects(key); n != 0 {
		t.Errorf("the clearing house was asked %d times; this attempt died before", n)
	}
	w.send(t, died["transfer-18"].again()).expect(t, http.StatusCreated, false, `"reference":"rent"`)
	if n := w.effects(key); n != 1 {
		t.Errorf("released, it ran: the clearing house was asked %d times under that key", n)
	}

	r.block() // --no-answer
	w.send(t, died["transfer-19"].again()).expect(t, http.StatusInternalServerError, false, "idempotency_answer_unavailable")

	if refused := r.block(); !strings.Contains(refused, "alice settled it") {
		t.Errorf("who comes second is not told who was first: %s", refused)
	}

	if over := r.block(); !strings.Contains(over, "completed: ") || !strings.Contains(over, "alice released attempt 1") {
		t.Errorf("the record that was released is not shown as completed: %s", over)
	}

	before = w.balanceOfBob(t)
	r.block() // write to the service's own tables, before the answer is settled
	if got := w.balanceOfBob(t); got != before+700 {
		t.Errorf("the recipient had %d, and has %d; want 700 more", before, got)
	}
	r.block() // settled again
	w.send(t, died["transfer-19"].again()).expect(t, http.StatusCreated, true, `"amount":700`)
}

// balanceOfBob returns the balance of bob's account in euros, which receives the transfers.
func (w *world) balanceOfBob(t *testing.T) int {
	t.Helper()
	out, err := w.stack.Database().Client().GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String(w.stack.Table("AccountsTable")), ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "EUR https://issuer.example.com bob"}},
	})
	var account struct {
		Balance int `dynamodbav:"balance"`
	}
	if err == nil {
		err = attributevalue.UnmarshalMap(out.Item, &account)
	}
	if err != nil {
		t.Fatal(err)
	}
	return account.Balance
}

// downstreamKey returns the downstream key in the output of idem show.
func downstreamKey(t *testing.T, out string) string {
	t.Helper()
	_, key, found := strings.Cut(out, "clear: ")
	key, _, ended := strings.Cut(key, "\n")
	if !found || !ended {
		t.Fatalf("no downstream key is shown: %s", out)
	}
	return key
}

// states checks that idem show prints what the page's table says, for a record in each state.
func (w *world) states(t *testing.T, sh *shell, died casualties) {
	t.Helper()
	found := map[string]bool{}
	for _, row := range rows(t, w.page.section(t, "A payment is stuck"), "state") {
		state, _, _ := strings.Cut(strings.ReplaceAll(row[0], ",", ":"), ":")
		found[state] = true
	}
	show := func(state string, r request, code int, says string) {
		t.Helper()
		if !found[state] {
			t.Errorf("the page's table has no row %q", state)
		}
		delete(found, state)
		got, out := sh.run(showCommand(r))
		if got != code || !strings.Contains(out, says) {
			t.Errorf("%s: exit code %d, want %d with %q\n%s", state, got, code, says, out)
		}
	}

	show("held", died["transfer-17"], 0, "held: ")
	show("dead", died["transfer-20"], 0, "dead: its attempt died; the next retry takes it over")
	w.send(t, died["transfer-20"].again()).expect(t, http.StatusCreated, false, `"reference":"loan"`)

	done := payment("alice", "order-1")
	first := w.send(t, done)
	show("completed", done, 0, first.body)
	chain := identified("trace", done) + " --then 'answer:/id => receipts message receipt' --then 'key => notifications message notification'"
	sh.await(chain, "  completed  ", 3)
	if out := sh.must("%s", chain); !strings.Contains(out, "message receipt") || !strings.Contains(out, "message notification") || strings.Count(out, "lambdaidem#") != 3 {
		t.Errorf("the payment's receipt and its message are not found:\n%s", out)
	}

	gaveUp := payment("alice", "order-2", "X-Demo-Fail-Attempts", "1")
	w.send(t, gaveUp).expect(t, http.StatusInternalServerError, false, "demo_failure")
	show("released", gaveUp, 0, "released: its last attempt failed")
	w.send(t, gaveUp).expect(t, http.StatusCreated, false, "pay_")

	refused := transfer("transfer-0", "nobody")
	refused.body = strings.Replace(refused.body, "bob", "carol", 1)
	w.send(t, refused).expect(t, http.StatusNotFound, false, "recipient_not_found")
	show("failed", refused, 0, "failed: retries get its answer, a failure")

	show("none", payment("alice", "order-0"), 3, "there is no record")

	w.whileRunning(t, payment("alice", "order-3"), func() {
		show("in progress", payment("alice", "order-3"), 0, "in progress: an attempt holds the lease")
		w.learn("--key order-3", sh.must("%s", showCommand(payment("alice", "order-3"))))
		code, out := sh.run(identified("release", payment("alice", "order-3")) + " --token " + w.token("order-3") + " --reason r --yes")
		if code != 4 || !strings.Contains(out, "the lease is live") {
			t.Errorf("idem touches what is in progress: %d\n%s", code, out)
		}
	})
	for state := range found {
		t.Errorf("the page's table has %q, which nothing here is", state)
	}
}

// whileRunning calls do while the attempt of a request waits at its end.
func (w *world) whileRunning(t *testing.T, r request, do func()) {
	t.Helper()
	gate := holdCompletion(w)
	ended := w.sendAside(t, r)
	reached(t, gate)
	do()
	if _, err := gate.Open(); err != nil {
		t.Error(err)
	}
	(<-ended).expect(t, http.StatusCreated, false, "pay_")
}

// showCommand returns the page's command for the record of a customer's request.
func showCommand(r request) string { return identified("show", r) }

func identified(verb string, r request) string {
	namespace := map[string]string{"/payments": "PaymentsFunction", "/transfers": "TransfersFunction"}[r.path]
	return "idem " + verb + " --namespace " + namespace + " --route 'POST " + r.path + "' --caller 'jwt:https://issuer.example.com|" + r.user + "' --key " + r.key
}
