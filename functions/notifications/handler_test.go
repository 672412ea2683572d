package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdaidem/toolkit/functions/internal/demo"
	"github.com/lambdaidem/toolkit/functions/internal/ledger"
	"github.com/lambdaidem/toolkit/functions/internal/notification"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	outside "github.com/lambdaidem/toolkit/localstack/mailer"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// setUp is the function under test with a mailer.
type setUp struct {
	mailer  *outside.Service
	store   *idemtest.Store
	clock   *idemtest.Clock
	handler handler
}

func newSetUp(t *testing.T) *setUp {
	t.Helper()
	service, err := outside.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if misuses := service.Misuses(); len(misuses) != 0 {
			t.Errorf("the mailer was told: %q", misuses)
		}
		if err := service.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &setUp{mailer: service, store: idemtest.NewStore(nil), clock: idemtest.NewClock()}
	s.handler = handler{s.mailerAt(t, service.URL()), demo.Nowhere}
	return s
}

func (s *setUp) mailerAt(t *testing.T, url string) mailer {
	t.Helper()
	m, err := newMailer(url)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (s *setUp) guarded() queueHandler {
	return guarded(lambdaidem.New(s.store, func(o *lambdaidem.Options) { o.Observer, o.Clock = lambdaidem.Discard, s.clock.Now }), s.handler)
}

// deliver lets the function handle a batch, and returns the number of failed messages.
func (s *setUp) deliver(t *testing.T, e events.SQSEvent) (failed int) {
	t.Helper()
	answer, err := s.guarded()(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return len(answer.BatchItemFailures)
}

func payment(reference string) ledger.Payment {
	return ledger.Payment{ID: ledger.NewPaymentID(), Owner: "https://issuer.example.com alice", Amount: 1250, Currency: "EUR", Reference: reference, CreatedAt: "2026-01-02T03:04:05Z"}
}

// message returns the message that functions/receipts sends about a payment, with this key.
func message(t *testing.T, key string, p ledger.Payment) idemtest.Message {
	t.Helper()
	body, err := notification.Of(p).Body()
	if err != nil {
		t.Fatal(err)
	}
	return idemtest.Message{ID: "id-" + key, Key: key, Group: p.ID, Body: body}
}

// delivery returns a batch of one message.
func delivery(t *testing.T, reference string) events.SQSEvent {
	t.Helper()
	return idemtest.SQS("notifications.fifo", message(t, "key-1", payment(reference)))
}

// expect checks that the mailer sent one mail, after this number of calls with one key.
func (s *setUp) expect(t *testing.T, calls int, refused bool) {
	t.Helper()
	all := s.mailer.Effects()
	if len(all) != 1 || len(s.mailer.Calls()) != 1 {
		t.Fatalf("the mails are %+v, the calls %v; want one mail", all, s.mailer.Calls())
	}
	for _, e := range all {
		if e.Calls != calls || e.Refused != refused || e.To != "https://issuer.example.com alice" || e.Amount != 1250 || !ledger.IsPaymentID(e.Payment) {
			t.Errorf("the mail is %+v; want it of %d calls, refused: %v", e, calls, refused)
		}
	}
}

func TestE6_MessageThatComesAgainIsOneMail(t *testing.T) {
	s := newSetUp(t)
	if answer := idemtest.Twice(t, s.guarded(), delivery(t, "order 7")); len(answer.BatchItemFailures) != 0 {
		t.Errorf("%v failed", answer.BatchItemFailures)
	}
	s.expect(t, 1, false)
}

// An attempt dies after the call of the mailer. The next attempt calls the mailer again, with
// the same key.
func TestE6_CrashAfterTheCallIsOneMail(t *testing.T) {
	s, e := newSetUp(t), delivery(t, "order 7")
	s.handler.told = func(ctx context.Context, _ string) error { s.store.Kill(ctx); return nil }
	idemtest.Crash(t, 30*time.Second, func(ctx context.Context) { _, _ = s.guarded()(ctx, e) })
	s.expect(t, 1, false)
	s.handler.told = demo.Nowhere
	if failed := s.deliver(t, e); failed != 1 {
		t.Error("the message was not reported although the lease of the attempt that died runs")
	}
	s.clock.Advance(time.Hour)
	for range 2 {
		if failed := s.deliver(t, e); failed != 0 {
			t.Errorf("%d failed after the lease had ended", failed)
		}
	}
	s.expect(t, 2, false)
}

func TestV2_MailerThatRefusesForGoodIsReportedEachTime(t *testing.T) {
	s, e := newSetUp(t), delivery(t, "mail-refuses")
	for range 3 {
		if failed := s.deliver(t, e); failed != 1 {
			t.Errorf("%d failed; want the message", failed)
		}
	}
	s.expect(t, 3, true)
}

func TestC1_MailerThatFailsForNowIsCalledAgain(t *testing.T) {
	for reference, want := range map[string]struct{ failures, calls int }{
		"mail-fails=2":  {0, 3}, // the same attempt calls again
		"mail-fails=3":  {1, 4}, // the next attempt succeeds
		"mail-loses=1":  {0, 2},
		"mail-delay=20": {0, 1},
	} {
		t.Run(reference, func(t *testing.T) {
			s, e := newSetUp(t), delivery(t, reference)
			failures := 0
			for s.deliver(t, e) != 0 {
				failures++
			}
			if failures != want.failures {
				t.Errorf("%d attempts failed; want %d", failures, want.failures)
			}
			s.expect(t, want.calls, false)
		})
	}
}

func TestWhatIsNoNotificationIsReported(t *testing.T) {
	s := newSetUp(t)
	if failed := s.deliver(t, idemtest.SQS("notifications.fifo", idemtest.Message{Key: "k", Body: `{"payment":"pay_1"}`})); failed != 1 || len(s.mailer.Calls()) != 0 {
		t.Errorf("%d failed, the mailer was called %v", failed, s.mailer.Calls())
	}
}

func TestDemoFailsAfterTheMailerWasTold(t *testing.T) {
	s, e := newSetUp(t), delivery(t, "notification-fails=2 receipt-fails=9")
	s.handler.told = demo.At("notification")
	for attempt, want := range []int{1, 1, 0} {
		if failed := s.deliver(t, e); failed != want {
			t.Errorf("attempt %d: %d failed; want %d", attempt+1, failed, want)
		}
	}
	s.expect(t, 3, false)
}

// A message that was handled, and that a redrive or a consumer of the dead-letter queue delivers
// weeks later, causes no second mail.
func TestV3_MessageIsDoneOnceWhicheverWayItComes(t *testing.T) {
	s := newSetUp(t)
	m := message(t, "key-1", payment("order 7"))
	s.deliver(t, idemtest.SQS("notifications.fifo", m))
	s.clock.Advance(29 * 24 * time.Hour)
	m.ID = "redriven"
	if failed := s.deliver(t, idemtest.SQS("dead.fifo", m)); failed != 0 {
		t.Errorf("%d failed", failed)
	}
	s.expect(t, 1, false)
}

// A payment causes one mail, whichever key its message has.
func TestK5_PaymentIsOneMailWhateverKeyItsMessageHas(t *testing.T) {
	s, p := newSetUp(t), payment("order 7")
	other := p
	other.Owner, other.Amount = "https://issuer.example.com mallory", 1
	for i, c := range []struct {
		key    string
		of     ledger.Payment
		failed int
	}{{p.ID, p, 0}, {"", p, 0}, {"another", p, 0}, {p.ID, p, 0}, {p.ID, other, 1}, {"", other, 1}} {
		m := message(t, c.key, c.of)
		m.ID = fmt.Sprint("id-", i)
		if failed := s.deliver(t, idemtest.SQS("notifications.fifo", m)); failed != c.failed {
			t.Errorf("message %d: %d failed; want %d", i, failed, c.failed)
		}
		s.expect(t, 1, false)
	}
}

// A function with another name finds the same records.
func TestF1_RenamedFunctionSendsNothingAgain(t *testing.T) {
	s, e := newSetUp(t), delivery(t, "order 7")
	before := lambdacontext.FunctionName
	t.Cleanup(func() { lambdacontext.FunctionName = before })
	for _, name := range []string{"stack-NotificationsFunction-1", "stack-MailsFunction-2"} {
		if lambdacontext.FunctionName = name; s.deliver(t, e) != 0 {
			t.Errorf("%s: the message failed", name)
		}
	}
	s.expect(t, 1, false)
}

func TestEverySuccessOfTheMailerIsOneAndNothingElse(t *testing.T) {
	for status, want := range map[int]int{http.StatusOK: 0, http.StatusCreated: 0, http.StatusAccepted: 0, http.StatusNoContent: 0, 299: 0,
		http.StatusMultipleChoices: 1, http.StatusNotModified: 1, http.StatusBadRequest: 1, http.StatusConflict: 1} {
		s := newSetUp(t)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost || r.URL.Path != "/base/mails" || r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
			}
			w.WriteHeader(status)
		}))
		s.handler.mailer = s.mailerAt(t, server.URL+"/base")
		if failed := s.deliver(t, delivery(t, "order 7")); failed != want {
			t.Errorf("%d: %d failed; want %d", status, failed, want)
		}
		server.Close()
	}
}

// The host that a redirect of the mailer names receives no request, and so learns nothing
// about the payer.
func TestE6_NoRedirectIsFollowed(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s was asked for, with the key %q", r.Method, r.URL, r.Header.Get("Idempotency-Key"))
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(elsewhere.Close)
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, status))
		s := newSetUp(t)
		s.handler.mailer = s.mailerAt(t, server.URL)
		if failed := s.deliver(t, delivery(t, "order 7")); failed != 1 {
			t.Errorf("%d: %d failed; want the message", status, failed)
		}
		server.Close()
	}
}

func TestMailerNeedsAURL(t *testing.T) {
	for _, url := range []string{"", "mailer.example.com", "ftp://mailer.example.com", "https://", "https:///mails", "http://a b"} {
		if _, err := newMailer(url); err == nil {
			t.Errorf("newMailer took %q", url)
		}
	}
}

func TestL5_SlowMailerIsNotTheEndOfTheInvocation(t *testing.T) {
	deployed, err := template.Read("../../template.yaml", template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := deployed.Function("NotificationsFunction")
	m := (*setUp)(nil).mailerAt(t, "https://mailer.example.com")
	// Leave the last second before the deadline for the guard's writes. The messages of a
	// batch are handled one after another.
	if limit := m.client.Timeout; limit <= 0 || time.Duration(f.Sources[0].BatchSize)*limit > f.Timeout-time.Second {
		t.Errorf("the mailer gets %v for each of %d messages, of the function's %v", limit, f.Sources[0].BatchSize, f.Timeout)
	}
}

// The TTL covers the time in the queue, in the dead-letter queue, and in the queue again after a
// redrive. Before that, the message can be sent again while the stream has the payment, or while
// the stream's dead-letter queue names it and an operator may send it by hand.
func TestL7_RecordsOutliveTheMessagesWayBack(t *testing.T) {
	all, err := template.Read("../../template.yaml", template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	queues := map[string]time.Duration{}
	for _, q := range all.Queues {
		queues[q.LogicalID] = q.Retention
	}
	const stream = 24 * time.Hour // DynamoDB, "Change data capture for DynamoDB Streams"
	ways := []time.Duration{stream, queues["ReceiptsDeadQueue"], queues["NotificationsQueue"], queues["NotificationsDeadQueue"], queues["NotificationsQueue"]}
	back := time.Duration(0)
	for _, way := range ways {
		back += way
	}
	if slices.Contains(ways, 0) || ttl <= back {
		t.Errorf("the ttl is %v, and a message can come back for %v: %v", ttl, back, ways)
	}
}
