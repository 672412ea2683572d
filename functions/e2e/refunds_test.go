package e2e_test

import (
	"net/http"
	"strings"
	"testing"
)

func refundOf(id, key, body string) request {
	return request{path: "/payments/" + id + "/refunds", keys: []string{key}, body: body}
}

// expectLeft checks how much of the user's only payment can still be refunded, the number of
// refunds, and the account.
func (u user) expectLeft(t *testing.T, left int64, refunds int) {
	t.Helper()
	u.expectPayments(t, 1)
	made := u.payments(t)
	if made[0].Refundable != left {
		t.Errorf("the payment is %+v; want %d left", made[0], left)
	}
	var of []payment
	for _, p := range scan[payment](t, "PaymentsTable") {
		if p.PaymentID == made[0].ID {
			of = append(of, p)
		}
	}
	if len(of) != refunds {
		t.Errorf("the refunds are %+v; want %d", of, refunds)
	}
}

func TestR1_RefundTwiceIsOneRefundAndOneAnswer(t *testing.T) {
	u := newUser(t)
	id := u.pay(t, "order-1")
	first := u.mustSend(t, refundOf(id, "refund-1", `{"amount":1000}`))
	expectStatus(t, first, http.StatusCreated)
	if !strings.Contains(first.body, `"left":250`) {
		t.Errorf("answer %s; want 250 left", first.body)
	}
	expectReplay(t, first, u.mustSend(t, refundOf(id, "refund-1", `{ "amount": 1000 }`)))
	u.expectLeft(t, 250, 1)
}

func TestX1_RefusedRefundIsKeptAndReplayed(t *testing.T) {
	u := newUser(t)
	id := u.pay(t, "order-1")
	first := u.mustSend(t, refundOf(id, "refund-1", `{"amount":1251}`))
	expectProblem(t, first, http.StatusConflict, "refund_exceeds_rest")
	expectReplay(t, first, u.mustSend(t, refundOf(id, "refund-1", `{"amount":1251}`)))
	u.expectLeft(t, 1250, 0)
}

func TestF1_OneKeyOnTwoRoutesIsTwoRecords(t *testing.T) {
	u := newUser(t)
	id := u.pay(t, "key-1")
	expectStatus(t, u.mustSend(t, refundOf(id, "key-1", `{"amount":1}`)), http.StatusCreated)
	if n := len(u.records(t)); n != 2 {
		t.Errorf("there are %d records; want 2", n)
	}
	u.expectLeft(t, 1249, 1)
}

func TestAnothersPaymentCannotBeRefunded(t *testing.T) {
	u, other := newUser(t), newUser(t)
	id := u.pay(t, "order-1")
	first := other.mustSend(t, refundOf(id, "refund-1", `{"amount":1}`))
	expectProblem(t, first, http.StatusNotFound, "payment_not_found")
	expectReplay(t, first, other.mustSend(t, refundOf(id, "refund-1", `{"amount":1}`)))
	u.expectLeft(t, 1250, 0)
}
