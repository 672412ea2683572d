package ledger_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/functions/internal/ledger"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// bank has the tables of template.yaml, and a guard that commits to them.
type bank struct {
	client   *dynamodb.Client
	payments ledger.Payments
	accounts ledger.Accounts
	guard    *lambdaidem.Guard
}

func newBank(t *testing.T) bank {
	t.Helper()
	client := ddblocal.ForTest(t).Client()
	names := template.TablesForTest(t, client, "../../../template.yaml")
	return bank{
		client:   client,
		payments: ledger.Payments{API: client, Name: names["PaymentsTable"]},
		accounts: ledger.Accounts(names["AccountsTable"]),
		guard: lambdaidem.New(dynamostore.New(client, names["IdempotencyTable"]), func(o *lambdaidem.Options) {
			o.Namespace, o.Observer = "bank", lambdaidem.Discard
		}),
	}
}

// open opens an account of alice in EUR.
func (b bank) open(t *testing.T, balance int64) {
	t.Helper()
	_, err := b.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(string(b.accounts)), Item: map[string]types.AttributeValue{
		"id": &types.AttributeValueMemberS{Value: "EUR alice"}, "balance": &types.AttributeValueMemberN{Value: strconv.FormatInt(balance, 10)}}})
	if err != nil {
		t.Fatal(err)
	}
}

func (b bank) wantBalance(t *testing.T, want string) {
	t.Helper()
	out, err := b.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(string(b.accounts)), ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "EUR alice"}}})
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := out.Item["balance"].(*types.AttributeValueMemberN); n == nil || n.Value != want {
		t.Errorf("the account is %v; want a balance of %s", out.Item, want)
	}
}

// commit commits the writes that the function enlist adds to a transaction, with a new key.
func (b bank) commit(ctx context.Context, enlist func(*dynamostore.Tx)) error {
	_, err := lambdaidem.Do(ctx, b.guard, lambdaidem.Call{Operation: "test", Key: rand.Text()}, func(ctx context.Context) (string, error) {
		enlist(dynamostore.Enlist(ctx))
		return "done", nil
	})
	return err
}

// pay makes a payment of 1000 for alice.
func (b bank) pay(t *testing.T) ledger.Payment {
	t.Helper()
	p := ledger.Payment{ID: ledger.NewPaymentID(), Owner: "alice", Amount: 1000, Currency: "EUR", CreatedAt: "2026-01-02T03:04:05Z", Refundable: 1000}
	if err := b.commit(t.Context(), func(tx *dynamostore.Tx) { b.payments.Add(tx, p) }); err != nil {
		t.Fatal(err)
	}
	return p
}

// refund refunds a part of the payment.
func (b bank) refund(ctx context.Context, p ledger.Payment, amount int64) error {
	r := ledger.Refund{ID: ledger.NewRefundID(), PaymentID: p.ID, Amount: amount, Currency: p.Currency, Left: p.Refundable - amount}
	return b.commit(ctx, func(tx *dynamostore.Tx) { b.payments.Refund(tx, p, r) })
}

func TestGetReturnsOnlyTheOwners(t *testing.T) {
	b := newBank(t)
	p := b.pay(t)
	if got, err := b.payments.Get(t.Context(), "alice", p.ID); err != nil || got != p {
		t.Errorf("alice gets %+v, %v; want %+v", got, err, p)
	}
	if err := b.refund(t.Context(), p, 1); err != nil {
		t.Fatal(err)
	}
	for _, of := range []struct{ owner, id string }{{"bob", p.ID}, {"", p.ID}, {"alice", ledger.NewPaymentID()}, {"alice", ledger.NewRefundID()}, {"alice", ""}} {
		if got, err := b.payments.Get(t.Context(), of.owner, of.id); !errors.Is(err, ledger.ErrNotFound) || got.ID != "" {
			t.Errorf("%q gets %+v, %v for %s; want ErrNotFound", of.owner, got, err, of.id)
		}
	}
}

func TestG1_DebitNeverOverdraws(t *testing.T) {
	b := newBank(t)
	b.open(t, 1000)
	for _, c := range []struct {
		currency string
		amount   int64
		want     error
	}{
		{"EUR", 700, nil},
		{"EUR", 301, lambdaidem.Code("insufficient_funds")},
		{"USD", 1, lambdaidem.Code("account_not_found")},
		{"EUR", 300, nil},
		{"EUR", 1, lambdaidem.Code("insufficient_funds")},
	} {
		err := b.commit(t.Context(), func(tx *dynamostore.Tx) { b.accounts.Debit(tx, "alice", c.currency, c.amount) })
		if !errors.Is(err, c.want) {
			t.Errorf("%d %s: %v; want %v", c.amount, c.currency, err, c.want)
		}
	}
	b.wantBalance(t, "0")
}

func TestCreditComesIntoAnAccountThatIsThere(t *testing.T) {
	b := newBank(t)
	credit := func(tx *dynamostore.Tx) { b.accounts.Credit(tx, "alice", "EUR", 5) }
	if err := b.commit(t.Context(), credit); !errors.Is(err, lambdaidem.ErrConditionFailed) {
		t.Errorf("without an account: %v; want an error that is not stored", err)
	}
	b.open(t, 1000)
	if err := b.commit(t.Context(), credit); err != nil {
		t.Error(err)
	}
	b.wantBalance(t, "1005")
}

// Refunds that read the same payment can't take the same money.
func TestRefundsAtOnceNeverExceedThePayment(t *testing.T) {
	b := newBank(t)
	p := b.pay(t)
	var (
		wg      sync.WaitGroup
		granted atomic.Int64
	)
	for range 8 {
		wg.Go(func() {
			switch err := b.refund(t.Context(), p, 300); {
			case err == nil:
				granted.Add(1)
			case !errors.Is(err, lambdaidem.Code("payment_changed")) && !errors.Is(err, lambdaidem.ErrOutcomeUnknown):
				t.Errorf("a refund: %v", err)
			}
		})
	}
	wg.Wait()
	if got, err := b.payments.Get(t.Context(), "alice", p.ID); err != nil || granted.Load() != 1 || got.Refundable != 700 {
		t.Errorf("of 8 refunds of 300, %d were granted: %+v, %v; want 1, and 700 left", granted.Load(), got, err)
	}
}

func TestIsPaymentID(t *testing.T) {
	for id, want := range map[string]bool{
		ledger.NewPaymentID():              true,
		ledger.NewRefundID():               false,
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
