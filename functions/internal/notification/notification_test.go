package notification_test

import (
	"testing"

	"github.com/lambdaidem/toolkit/functions/internal/ledger"
	"github.com/lambdaidem/toolkit/functions/internal/notification"
)

var payment = ledger.Payment{ID: "pay_AAAAAAAAAAAAAAAAAAAAAAAAAA", Owner: "https://issuer.example.com alice", Amount: ledger.MaxAmount,
	Currency: "EUR", Reference: `"7" & <8>`, CreatedAt: "2026-01-02T03:04:05.678Z", Refundable: 5}

func TestParseReadsWhatBodyWrites(t *testing.T) {
	n := notification.Of(payment)
	want := notification.Notification{PaymentID: payment.ID, To: payment.Owner, Amount: payment.Amount, Currency: "EUR", Reference: payment.Reference, PaidAt: payment.CreatedAt}
	body, err := n.Body()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := notification.Parse(body); err != nil || got != want || n != want {
		t.Errorf("%s is %+v, %v; want %+v", body, got, err, want)
	}
}

func TestF5_BodyIsTheSameForOnePayment(t *testing.T) {
	before := notification.Of(payment)
	refunded := payment
	refunded.Refundable = 0
	if after := notification.Of(refunded); after != before {
		t.Errorf("%+v after a refund, %+v before", after, before)
	}
}

func TestParseRefusesWhatIsNoNotification(t *testing.T) {
	for _, body := range []string{"", "null", "{}", `"pay_AAAAAAAAAAAAAAAAAAAAAAAAAA"`, `{"payment":"pay_AAAAAAAAAAAAAAAAAAAAAAAAAA"}`, `{"payment":"pay_1","amount":5}`,
		`{"payment":"pay_AAAAAAAAAAAAAAAAAAAAAAAAAA","amount":"5"}`, `{"payment":"pay_AAAAAAAAAAAAAAAAAAAAAAAAAA","amount":0}`} {
		if n, err := notification.Parse(body); err == nil || n != (notification.Notification{}) {
			t.Errorf("Parse(%s) = %+v, %v; want an error", body, n, err)
		}
	}
}

// What is a notification is one again after it was sent on.
func FuzzParse(f *testing.F) {
	body, err := notification.Of(payment).Body()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add(`{"payment":"pay_AAAAAAAAAAAAAAAAAAAAAAAAAA","amount":1,"to":"\xff","more":[]}`)
	f.Fuzz(func(t *testing.T, body string) {
		n, err := notification.Parse(body)
		if err != nil {
			return
		}
		sent, err := n.Body()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := notification.Parse(sent); err != nil || got != n {
			t.Errorf("%q was read as %+v, and then as %+v, %v", body, n, got, err)
		}
	})
}
