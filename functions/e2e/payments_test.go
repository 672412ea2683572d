package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

func TestR1_PaymentTwiceIsOnePaymentAndOneAnswer(t *testing.T) {
	u := newUser(t)
	first := u.mustSend(t, order("order-1", dinner))
	expectStatus(t, first, http.StatusCreated)
	expectReplay(t, first, u.mustSend(t, order("order-1", dinner)))
	u.expectPayments(t, 1)
	u.expectRecord(t, "COMPLETED", 1, "succeeded")
}

func TestE2_PaymentWithoutFundsIsA402ThatReplays(t *testing.T) {
	u := newUser(t)
	u.open(t, 1249)
	first := u.mustSend(t, order("order-1", dinner))
	expectProblem(t, first, http.StatusPaymentRequired, "insufficient_funds")
	u.open(t, opening) // the stored refusal is replayed nevertheless
	expectReplay(t, first, u.mustSend(t, order("order-1", dinner)))
	u.expectPayments(t, 0)
	u.expectRecord(t, "COMPLETED", 1, "failed")
	expectStatus(t, u.mustSend(t, order("order-2", dinner)), http.StatusCreated)
	u.expectPayments(t, 1)
}

func TestE2_PaymentWithoutAnAccountIsA404ThatReplays(t *testing.T) {
	u := newUser(t)
	dollars := order("order-1", strings.Replace(dinner, "EUR", "USD", 1))
	first := u.mustSend(t, dollars)
	expectProblem(t, first, http.StatusNotFound, "account_not_found")
	expectReplay(t, first, u.mustSend(t, dollars))
	u.expectPayments(t, 0)
}

// Concurrent payments with different keys, which together exceed the balance, never overdraw the
// account.
func TestG1_PaymentsAtOnceNeverOverdraw(t *testing.T) {
	u := newUser(t)
	u.open(t, 3*1250+1249)
	var group errgroup.Group
	answers := make([]answer, 8)
	for i := range answers {
		group.Go(func() (err error) {
			for { // a transaction that conflicts with another one gets a 503 and is repeated
				answers[i], err = u.send(t.Context(), order(fmt.Sprintf("order-%d", i), dinner))
				if err != nil || answers[i].header.Get("Retry-After") == "" {
					return err
				}
				select {
				case <-time.After(100 * time.Millisecond):
				case <-t.Context().Done():
					return t.Context().Err()
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	paid := 0
	for _, a := range answers {
		if a.status == http.StatusCreated {
			paid++
		} else {
			expectProblem(t, a, http.StatusPaymentRequired, "insufficient_funds")
		}
	}
	if paid != 3 || len(u.payments(t)) != 3 {
		t.Errorf("%d payments were answered, %d made; want 3", paid, len(u.payments(t)))
	}
	u.expectBalance(t, 1249)
}

func TestF3_ReorderedJSONIsTheSameRequest(t *testing.T) {
	u := newUser(t)
	first := u.mustSend(t, order("order-1", dinner))
	expectReplay(t, first, u.mustSend(t, order("order-1", "{ \"reference\": \"dinner\",\n\t\"currency\": \"EUR\", \"amount\": 1250 }\n")))
	u.expectPayments(t, 1)
}

func TestF5_OtherPayloadIsRefusedAndChangesNothing(t *testing.T) {
	u := newUser(t)
	first := u.mustSend(t, order("order-1", dinner))
	expectProblem(t, u.mustSend(t, order("order-1", strings.Replace(dinner, "1250", "9999", 1))),
		http.StatusUnprocessableEntity, "idempotency_payload_mismatch")
	expectReplay(t, first, u.mustSend(t, order("order-1", dinner)))
	u.expectPayments(t, 1)
}

func TestL8_SecondRequestAtOnceIsToldToComeBack(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	slow := order("order-1", dinner)
	slow.headers = map[string]string{"X-Demo-Delay-Ms": "2000"}
	var (
		first answer
		group errgroup.Group
	)
	group.Go(func() (err error) {
		first, err = u.send(t.Context(), slow)
		return err
	})
	u.awaitRecord(t)
	busy := u.mustSend(t, slow)
	expectProblem(t, busy, http.StatusConflict, "idempotency_in_progress")
	if busy.header.Get("Retry-After") != "1" {
		t.Errorf("the 409 has Retry-After: %q; want 1", busy.header.Get("Retry-After"))
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	expectStatus(t, first, http.StatusCreated)
	expectReplay(t, first, u.mustSend(t, slow))
	u.expectPayments(t, 1)
}

func TestX1_ServerErrorIsReleasedAndRunsAgainAsAttempt2(t *testing.T) {
	u := newUser(t)
	failing := order("order-1", dinner)
	failing.headers = map[string]string{"X-Demo-Fail-Attempts": "1"}
	expectProblem(t, u.mustSend(t, failing), http.StatusInternalServerError, "demo_failure")
	u.expectRecord(t, "RELEASED", 1, "")
	u.expectPayments(t, 0)
	second := u.mustSend(t, failing)
	expectStatus(t, second, http.StatusCreated)
	u.expectRecord(t, "COMPLETED", 2, "succeeded")
	expectReplay(t, second, u.mustSend(t, failing))
	u.expectPayments(t, 1)
}

func TestF2_TwoUsersWithOneKeyAreTwoPayments(t *testing.T) {
	a, b := newUser(t), newUser(t)
	if a.pay(t, "order-1") == b.pay(t, "order-1") {
		t.Error("both users got the same payment")
	}
	a.expectPayments(t, 1)
	b.expectPayments(t, 1)
}

func TestG3_ManyRequestsAtOnceAreOnePayment(t *testing.T) {
	u := newUser(t)
	answers := make([]answer, 100)
	var group errgroup.Group
	for i := range answers {
		group.Go(func() (err error) {
			answers[i], err = u.send(t.Context(), order("order-1", dinner))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	last := u.mustSend(t, order("order-1", dinner))
	fresh := 0
	for _, a := range answers {
		switch {
		case a.status == http.StatusCreated && a.body == last.body:
			if !a.replayed() {
				fresh++
			}
		case a.status == http.StatusConflict && a.header.Get("Retry-After") != "":
		default:
			t.Errorf("answer %d %s; want %s, or 409 with Retry-After", a.status, a.body, last.body)
		}
	}
	if fresh != 1 {
		t.Errorf("%d answers are not replays; want 1", fresh)
	}
	u.expectPayments(t, 1)
}

func TestK4_GetPassesUnguarded(t *testing.T) {
	u := newUser(t)
	id := u.pay(t, "order-1")
	for range 2 {
		a := u.mustSend(t, request{method: http.MethodGet, path: "/payments/" + id, keys: []string{"order-1"}})
		if a.status != http.StatusOK || a.replayed() || !strings.Contains(a.body, id) {
			t.Errorf("answer %d %v %s; want the payment, and no replay", a.status, a.header, a.body)
		}
	}
	if n := len(u.records(t)); n != 1 {
		t.Errorf("there are %d records; want the POST's alone", n)
	}
}

func TestPaymentIsShownToItsOwnerAlone(t *testing.T) {
	u := newUser(t)
	id := u.pay(t, "order-1")
	expectProblem(t, newUser(t).mustSend(t, request{method: http.MethodGet, path: "/payments/" + id}), http.StatusNotFound, "payment_not_found")
	expectProblem(t, u.mustSend(t, request{method: http.MethodGet, path: "/payments/7"}), http.StatusNotFound, "payment_not_found")
	without := request{method: http.MethodGet, path: "/payments/" + id, headers: map[string]string{"Authorization": ""}}
	expectStatus(t, u.mustSend(t, without), http.StatusUnauthorized)
}
