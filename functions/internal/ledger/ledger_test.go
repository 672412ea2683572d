package ledger_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/functions/internal/ledger"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// newTable makes a table as template.yaml describes it, under a name of its
// own.
func newTable(t *testing.T) ledger.Table {
	t.Helper()
	client := ddblocal.ForTest(t).Client()
	deployed, err := template.Read("../../../template.yaml", template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, described := range deployed.Tables {
		if described.LogicalID == "PaymentsTable" {
			described.Name = ledger.PaymentID("")
			if err := template.CreateTables(t.Context(), client, []template.Table{described}); err != nil {
				t.Fatal(err)
			}
			return ledger.Table{API: client, Name: described.Name}
		}
	}
	t.Fatal("template.yaml has no PaymentsTable")
	return ledger.Table{}
}

// paid puts a payment of 1000 by alice.
func paid(t *testing.T, table ledger.Table) ledger.Payment {
	t.Helper()
	p := ledger.Payment{ID: ledger.PaymentID(""), Owner: "alice", Amount: 1000, Currency: "EUR",
		CreatedAt: "2026-01-02T03:04:05Z", Refundable: 1000, Refunds: map[string]int64{}}
	p, err := table.Pay(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func refundOf(p ledger.Payment, amount int64) ledger.Refund {
	return ledger.Refund{ID: ledger.RefundID(""), PaymentID: p.ID, Owner: p.Owner, Amount: amount}
}

func TestGetReturnsOnlyTheOwners(t *testing.T) {
	table := newTable(t)
	p := paid(t, table)
	got, err := table.Get(t.Context(), "alice", p.ID)
	if err != nil || got.ID != p.ID || got.Amount != 1000 || got.Refundable != 1000 || got.CreatedAt != p.CreatedAt {
		t.Errorf("alice gets %+v, %v; want %+v", got, err, p)
	}
	for owner, id := range map[string]string{"bob": p.ID, "": p.ID, "alice": ledger.PaymentID("")} {
		if got, err := table.Get(t.Context(), owner, id); !errors.Is(err, ledger.ErrNotFound) || got.ID != "" {
			t.Errorf("%q gets %+v, %v for %s; want ErrNotFound", owner, got, err, id)
		}
	}
}

func TestPayMakesOnePaymentOfAnID(t *testing.T) {
	table := newTable(t)
	p := paid(t, table)
	if _, err := table.Refund(t.Context(), refundOf(p, 100)); err != nil {
		t.Fatal(err)
	}
	table.API = repeating{table.API}
	again := p
	again.CreatedAt, again.Refundable = "2026-02-02T00:00:00Z", 1000
	if got, err := table.Pay(t.Context(), again); err != nil || got.CreatedAt != p.CreatedAt || got.Refundable != 900 || len(got.Runs) != 2 || len(got.Refunds) != 1 {
		t.Errorf("the same payment again is %+v, %v", got, err)
	}
	for name, change := range map[string]func(*ledger.Payment){
		"owner":     func(p *ledger.Payment) { p.Owner = "bob" },
		"amount":    func(p *ledger.Payment) { p.Amount++ },
		"currency":  func(p *ledger.Payment) { p.Currency = "USD" },
		"reference": func(p *ledger.Payment) { p.Reference = "other" },
	} {
		other := p
		change(&other)
		if got, err := table.Pay(t.Context(), other); !errors.Is(err, ledger.ErrOtherPayment) || got.ID != "" {
			t.Errorf("another %s under its ID: %+v, %v", name, got, err)
		}
	}
}

func TestIDsComeFromTheRecord(t *testing.T) {
	if a, b := ledger.PaymentID("r"), ledger.PaymentID("r"); a != b || !ledger.IsPaymentID(a) {
		t.Errorf("one record gives %s and %s", a, b)
	}
	seen := map[string]bool{}
	for _, id := range []string{ledger.PaymentID("r"), ledger.PaymentID("s"), ledger.PaymentID(""), ledger.PaymentID(""), ledger.RefundID("r")} {
		if id = id[len("pay_"):]; seen[id] {
			t.Errorf("%s is there twice", id)
		}
		seen[id] = true
	}
}

func TestRefundNeverExceedsThePayment(t *testing.T) {
	table := newTable(t)
	p := paid(t, table)
	if got, err := table.Refund(t.Context(), refundOf(p, 700)); err != nil || got.Refundable != 300 {
		t.Fatalf("refund 700 of 1000: %+v, %v; want 300 left", got, err)
	}
	if got, err := table.Refund(t.Context(), refundOf(p, 301)); !errors.Is(err, ledger.ErrExceedsRest) || got.Refundable != 300 {
		t.Errorf("refund 301 of 300: %+v, %v; want ErrExceedsRest and 300 left", got, err)
	}
	if got, err := table.Refund(t.Context(), refundOf(p, 300)); err != nil || got.Refundable != 0 || got.Currency != "EUR" {
		t.Errorf("refund 300 of 300: %+v, %v; want 0 left", got, err)
	}
}

func TestRefundsAtOnceNeverExceedThePayment(t *testing.T) {
	table := newTable(t)
	p := paid(t, table)
	var (
		wg      sync.WaitGroup
		granted atomic.Int64
	)
	for range 8 {
		wg.Go(func() {
			switch _, err := table.Refund(t.Context(), refundOf(p, 300)); {
			case err == nil:
				granted.Add(1)
			case !errors.Is(err, ledger.ErrExceedsRest):
				t.Errorf("a refund: %v", err)
			}
		})
	}
	wg.Wait()
	got, err := table.Get(t.Context(), "alice", p.ID)
	if err != nil || granted.Load() != 3 || got.Refundable != 100 || len(got.Refunds) != 3 {
		t.Errorf("of 8 refunds of 300, %d were granted: %+v, %v; want 3, and 100 left", granted.Load(), got, err)
	}
}

func TestRefundOfAnothersPaymentIsNotFound(t *testing.T) {
	table := newTable(t)
	p := paid(t, table)
	for name, r := range map[string]ledger.Refund{
		"another owner":   {ID: ledger.RefundID(""), PaymentID: p.ID, Owner: "bob", Amount: 1},
		"unknown payment": {ID: ledger.RefundID(""), PaymentID: ledger.PaymentID(""), Owner: "alice", Amount: 1},
	} {
		if got, err := table.Refund(t.Context(), r); !errors.Is(err, ledger.ErrNotFound) || got.ID != "" {
			t.Errorf("%s: %+v, %v; want ErrNotFound", name, got, err)
		}
	}
}

func TestRefundsOfOnePaymentAreBounded(t *testing.T) {
	table := newTable(t)
	p := paid(t, table)
	for i := range ledger.MaxRefunds {
		if _, err := table.Refund(t.Context(), refundOf(p, 1)); err != nil {
			t.Fatalf("refund %d: %v", i+1, err)
		}
	}
	if _, err := table.Refund(t.Context(), refundOf(p, 1)); !errors.Is(err, ledger.ErrTooManyRefunds) {
		t.Errorf("refund %d: %v; want ErrTooManyRefunds", ledger.MaxRefunds+1, err)
	}
}

// repeating sends every UpdateItem twice, as the SDK does when a reply is lost.
type repeating struct{ ledger.API }

func (r repeating) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if _, err := r.API.UpdateItem(ctx, in, optFns...); err != nil {
		return nil, err
	}
	return r.API.UpdateItem(ctx, in, optFns...)
}

func TestRefundSentAgainRefundsOnce(t *testing.T) {
	table := newTable(t)
	p := paid(t, table)
	table.API = repeating{table.API}
	got, err := table.Refund(t.Context(), refundOf(p, 400))
	if err != nil || got.Refundable != 600 || len(got.Refunds) != 1 {
		t.Errorf("a refund of 400 that is sent twice: %+v, %v; want one refund, and 600 left", got, err)
	}
	r := refundOf(p, 100)
	if _, err := table.Refund(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	r.Amount = 200
	if _, err := table.Refund(t.Context(), r); !errors.Is(err, ledger.ErrOtherRefund) {
		t.Errorf("another refund under its ID: %v", err)
	}
}

func TestIsPaymentID(t *testing.T) {
	for id, want := range map[string]bool{
		ledger.PaymentID(""):               true,
		ledger.RefundID(""):                false,
		"":                                 false,
		"pay_":                             false,
		"pay_AAAAAAAAAAAAAAAAAAAAAAAAAA\n": false,
		"pay_aaaaaaaaaaaaaaaaaaaaaaaaaa":   false,
	} {
		if got := ledger.IsPaymentID(id); got != want {
			t.Errorf("IsPaymentID(%q) = %v; want %v", id, got, want)
		}
	}
}
