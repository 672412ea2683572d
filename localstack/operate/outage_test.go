package operate_test

import (
	"bytes"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
)

// outOfReach checks the page's section for functions that can't reach the table while the operator
// can: the log has the reason, and nothing is lost.
func (w *world) outOfReach(t *testing.T) {
	refused := payment("alice", "order-8")
	w.inject(func(r *proxy.Request) proxy.Fault {
		if lockOf(r, "PaymentsFunction") != "" {
			return proxy.LoseRequest
		}
		return nil
	})
	w.send(t, refused).expect(t, http.StatusServiceUnavailable, false, "idempotency_store_unavailable")
	w.inject(nil)
	r := w.read(t, "The table is out of reach")
	if out := r.block(); out != "All is well.\n" {
		t.Errorf("the operator's check says: %s", out)
	}
	if out := r.block(); !strings.Contains(out, `"reason":"unreachable"`) {
		t.Errorf("the log doesn't have the reason: %s", out)
	}
	w.send(t, refused).expect(t, http.StatusCreated, false, "pay_")
	r.completed()
}

// lockOf returns the id of the record that a request of the given function claims. It returns ""
// for any other request.
func lockOf(r *proxy.Request, function string) string {
	if r.Operation != "PutItem" || !bytes.Contains(r.Body, []byte(function+" POST ")) {
		return ""
	}
	return aRecord.FindString(string(r.Body))
}

// loseALock loses the reply to a claim under policy Hold, although the claim was applied. The
// handler never starts, and the record is held.
func (w *world) loseALock(t *testing.T) request {
	t.Helper()
	locked := transfer("transfer-21", "shoes", "X-Demo-Policy", "hold")
	var record atomic.Pointer[string]
	w.inject(func(r *proxy.Request) proxy.Fault {
		if id := lockOf(r, "TransfersFunction"); id != "" && record.CompareAndSwap(nil, &id) {
			return proxy.LoseReply
		}
		if id := record.Load(); id != nil && bytes.Contains(r.Body, []byte(*id)) {
			return proxy.LoseRequest // so that the claim can't be withdrawn
		}
		return nil
	})
	w.send(t, locked).expect(t, http.StatusServiceUnavailable, false, "idempotency_")
	w.inject(nil)
	return locked
}

// heldByAnOutage checks that the page's commands list a record that an outage left held without a
// step, and that its request runs once the record is released.
func (w *world) heldByAnOutage(t *testing.T, locked request) {
	r := w.read(t, "An outage under Hold")
	r.shell.await("idem leases", "  held  ", 1)
	if out := r.block(); strings.Count(out, "lambdaidem#") != 1 || !strings.Contains(out, "  held  ") {
		t.Errorf("not the one record is listed: %s", out)
	}
	if out := r.block(); out != "1\n" {
		t.Errorf("not the one line of the log is collected: %s", out)
	}
	if out := r.block(); !strings.Contains(out, "1 record released.") {
		t.Errorf("the record is not released: %s", out)
	}
	w.send(t, locked.again()).expect(t, http.StatusCreated, false, `"reference":"shoes"`)
	if out := r.block(); out != "No lease is dead, and no record is held.\n" {
		t.Errorf("something is left: %s", out)
	}
}

// tooSlow checks that an attempt that never ends dies at the function's timeout, that the log says
// so, and that a retry is the second attempt.
func (w *world) tooSlow(t *testing.T, slow <-chan answer) {
	(<-slow).expect(t, http.StatusInternalServerError, false, "")
	r := w.read(t, "A handler is slower than its timeout")
	again := payment("alice", "order-11")
	r.shell.await(showCommand(again), "dead: ", 1)
	if out := r.block(); !strings.Contains(out, "attempt      1") {
		t.Errorf("the attempt that died is not shown: %s", out)
	}
	if out := r.block(); out != "1\n" {
		t.Errorf("the log has so many timeouts: %s; want 1", out)
	}
	w.send(t, again).expect(t, http.StatusCreated, false, "pay_")
	r.completedBy(2)
}

// handlerFails checks that the record shows a handler that answered 500 twice, and that the next
// retry succeeds.
func (w *world) handlerFails(t *testing.T) {
	r := w.read(t, "A handler fails or dies")
	fails := payment("alice", "order-13", "X-Demo-Fail-Attempts", "2")
	for range 2 {
		w.send(t, fails).expect(t, http.StatusInternalServerError, false, "demo_failure")
	}
	if out := r.block(); !strings.Contains(out, "last failure  http_500") || !strings.Contains(out, "attempt       2") {
		t.Errorf("the handler's failure is not shown: %s", out)
	}
	if lines := w.findsRecord(t, "failed attempts", aRecord.FindString(r.shell.must("%s", showCommand(fails)))); len(lines) != 2 {
		t.Errorf("the two attempts that failed are not found: %v", lines)
	}
	w.send(t, fails).expect(t, http.StatusCreated, false, "pay_")
	r.completedBy(3)
}

// answerLost checks the page's section for an answer that can't be read, here because the item of a
// payment is damaged.
func (w *world) answerLost(t *testing.T) {
	r := w.read(t, "An answer is lost")
	paid := payment("alice", "order-14")
	w.send(t, paid).expect(t, http.StatusCreated, false, "pay_")
	id := aRecord.FindString(w.newShell(t).must("%s", showCommand(paid)))
	if _, err := w.stack.Database().Client().UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String(w.stack.Table("IdempotencyTable")), Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}},
		UpdateExpression: aws.String("SET #d = :d"), ExpressionAttributeNames: map[string]string{"#d": "data"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":d": &types.AttributeValueMemberS{Value: "{"}},
	}); err != nil {
		t.Fatal(err)
	}
	w.send(t, paid).expect(t, http.StatusInternalServerError, false, "idempotency_answer_unreadable")
	if out := r.block(); !strings.Contains(out, "can't be read: decode the stored answer") {
		t.Errorf("the damage is not shown: %s", out)
	}
}

// conditionFailed checks that the log names the failed write if the recipient's account is closed
// during a transfer, and that the retry succeeds once the account exists again.
func (w *world) conditionFailed(t *testing.T) {
	if err := w.stack.OpenAccount(t.Context(), "dave", "EUR", 0); err != nil {
		t.Fatal(err)
	}
	id := &types.AttributeValueMemberS{Value: "EUR https://issuer.example.com dave"}
	w.inject(func(r *proxy.Request) proxy.Fault {
		if r.Operation != "TransactWriteItems" || !bytes.Contains(r.Body, []byte("balance + :amount")) {
			return nil
		}
		return func(c *proxy.Call) {
			if _, err := w.stack.Database().Client().DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
				TableName: aws.String(w.stack.Table("AccountsTable")), Key: map[string]types.AttributeValue{"id": id},
			}); err != nil {
				t.Error(err)
			}
			proxy.Pass(c)
		}
	})
	failed := transfer("transfer-22", "bill")
	failed.body = strings.Replace(failed.body, `"bob"`, `"dave"`, 1)
	w.send(t, failed).expect(t, http.StatusInternalServerError, false, "idempotency_condition_failed")
	w.inject(nil)

	r := w.read(t, "A condition failed")
	if out := r.block(); !strings.Contains(out, "credit") {
		t.Errorf("the log doesn't name the write: %s", out)
	}
	if err := w.stack.OpenAccount(t.Context(), "dave", "EUR", 0); err != nil {
		t.Fatal(err)
	}
	w.send(t, failed).expect(t, http.StatusCreated, false, "tra_")
	r.completed()
}

// erased checks that a person's answers are deleted, and that no retry runs the handler again.
func (w *world) erased(t *testing.T) {
	her := payment("erin", "order-12")
	w.send(t, her).expect(t, http.StatusCreated, false, "pay_")
	r := w.read(t, "Personal data must be erased")
	if out := r.block(); !strings.Contains(out, "1 record would be erased") {
		t.Errorf("her record is not counted: %s", out)
	}
	if out := r.block(); !strings.Contains(out, "1 record erased") {
		t.Errorf("her record is not erased: %s", out)
	}
	if out := r.block(); strings.Contains(out, "pay_") {
		t.Errorf("the answer is still there: %s", out)
	}
	w.send(t, her).expect(t, http.StatusInternalServerError, false, "idempotency_answer_unavailable")
}
