package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// world is a shop with its tables, and a bank that counts its charges.
type world struct {
	shop    shop
	client  *dynamodb.Client
	store   *dynamostore.Store
	charges int
	status  int // the status of the bank's replies
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{client: ddblocal.ForTest(t).Client(), status: http.StatusCreated}
	bank := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		w.charges++
		rw.WriteHeader(w.status)
		_, _ = fmt.Fprintf(rw, `{"number":"charge-%d"}`, w.charges)
	}))
	t.Cleanup(bank.Close)
	tables := template.TablesForTest(t, w.client, "../template.yaml")
	w.store = dynamostore.New(w.client, tables["IdempotencyTable"])
	w.shop = shop{orders: tables["OrdersTable"], bank: bank.URL}
	return w
}

// stored returns the number of orders in the table.
func (w *world) stored(t *testing.T) int {
	t.Helper()
	out, err := w.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &w.shop.orders, ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	return len(out.Items)
}

func pizza() events.APIGatewayV2HTTPRequest {
	return idemtest.Request{Path: "/orders", Key: "order-1", Body: `{"item":"pizza","amount":1250}`}.APIGatewayV2()
}

func TestOrder_ARetryIsChargedOnce(t *testing.T) {
	w := newWorld(t)
	response := idemtest.Twice(t, w.shop.guarded(w.store), pizza())
	if response.StatusCode != http.StatusCreated || w.charges != 1 || w.stored(t) != 1 {
		t.Errorf("status %d, %d charges, %d orders", response.StatusCode, w.charges, w.stored(t))
	}
}

func TestOrder_ADeclinedCardIsNotAskedAgain(t *testing.T) {
	w := newWorld(t)
	w.status = http.StatusPaymentRequired
	response := idemtest.Twice(t, w.shop.guarded(w.store), pizza())
	if response.StatusCode != http.StatusPaymentRequired || w.charges != 1 || w.stored(t) != 0 {
		t.Errorf("status %d, %d charges, %d orders", response.StatusCode, w.charges, w.stored(t))
	}
}

func TestOrder_ACrashAfterTheChargeWaitsForAnOperator(t *testing.T) {
	w, clock := newWorld(t), idemtest.NewClock()
	failing := idemtest.NewStore(w.store)
	handler := w.shop.guarded(failing, func(o *lambdaidem.Options) { o.Clock = clock.Now })

	failing.Next(idemtest.Commit, idemtest.KillBefore) // the card is charged, and the order is not stored
	idemtest.Crash(t, 10*time.Second, func(ctx context.Context) { _, _ = handler(ctx, pizza()) })

	clock.Advance(13 * time.Second) // the lease has ended
	response, err := handler(idemtest.Invocation(t, 10*time.Second), pizza())
	if err != nil || response.StatusCode != http.StatusConflict || w.charges != 1 || w.stored(t) != 0 {
		t.Errorf("status %d, %v, %d charges, %d orders", response.StatusCode, err, w.charges, w.stored(t))
	}
}
