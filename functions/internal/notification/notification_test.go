package notification_test

import (
	"strings"
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

// Amazon SQS API Reference, "SendMessage": a message may contain only these characters.
func TestBodyHasNoCharacterThatSQSRefuses(t *testing.T) {
	odd := payment
	var all strings.Builder
	for r := rune(0); r <= 0xffff; r++ {
		all.WriteRune(r)
	}
	odd.Owner = all.String()
	odd.Reference = "\U0001fffe\U0010ffff"
	body, err := notification.Of(odd).Body()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range body {
		if r != 0x9 && r != 0xa && r != 0xd && (r < 0x20 || r > 0xd7ff) && (r < 0xe000 || r > 0xfffd) && r < 0x10000 {
			t.Errorf("the body has %U", r)
		}
	}
	if n, err := notification.Parse(body); err != nil || n != notification.Of(odd) {
		t.Errorf("the notification is another one, %v", err)
	}
}

func TestParseRefusesWhatIsNoNotification(t *testing.T) {
	const whole = `"payment":"pay_AAAAAAAAAAAAAAAAAAAAAAAAAA","to":"alice","amount":1,"currency":"EUR"`
	if _, err := notification.Parse("{" + whole + "}"); err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"{" + whole + `,"amount":1}`, "{" + whole + `,"Amount":99}`, "{" + whole + `,"more":[]}`, "{" + whole + "} {}", "[{" + whole + "}]",
		strings.Replace("{"+whole+"}", "alice", "", 1), strings.Replace("{"+whole+"}", "EUR", "", 1), strings.Replace("{"+whole+"}", "alice", "\xff", 1),
		strings.Replace("{"+whole+"}", `"amount":1`, `"amount":9007199254740992`, 1),
		strings.Replace("{"+whole+"}", `"amount":1`, `"amount":0`, 1), strings.Replace("{"+whole+"}", "pay_A", "ref_A", 1),
		"", "null", "{}", `"pay_AAAAAAAAAAAAAAAAAAAAAAAAAA"`, `{"payment":"pay_AAAAAAAAAAAAAAAAAAAAAAAAAA"}`, `{"payment":"pay_1","amount":5}`,
		`{"payment":"pay_AAAAAAAAAAAAAAAAAAAAAAAAAA","amount":"5"}`, `{"payment":"pay_AAAAAAAAAAAAAAAAAAAAAAAAAA","amount":0}`} {
		if n, err := notification.Parse(body); err == nil || n != (notification.Notification{}) {
			t.Errorf("Parse(%s) = %+v, %v; want an error", body, n, err)
		}
	}
}

// Parse returns the notification that Body has encoded.
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
