package watch_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/emf"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/watch"
)

// indexed sets the options of a store with an index of leases. The timeout is long enough for a
// busy machine.
func indexed(o *dynamostore.Options) { o.LeaseIndex, o.AttemptTimeout = "leases", time.Minute }

func newTable(t *testing.T) (*dynamodb.Client, string) {
	t.Helper()
	server := ddblocal.ForTest(t)
	t.Cleanup(server.CloseIdleConnections)
	client, table := server.Client(), "watch-"+rand.Text()
	if err := dynamostore.CreateTable(t.Context(), client, table, indexed); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := client.DeleteTable(context.WithoutCancel(t.Context()), &dynamodb.DeleteTableInput{TableName: &table}); err != nil {
			t.Error(err)
		}
	})
	return client, table
}

// The handler counts what the store finds, with the routes, the metrics and the log of its
// options.
func TestO2_TheHandlerLooksInItsStore(t *testing.T) {
	client, table := newTable(t)
	store := dynamostore.New(client, table, indexed)
	crashing := idemtest.NewStore(store)
	guard := lambdaidem.New(crashing, func(o *lambdaidem.Options) {
		o.Namespace, o.Observer = "shop", lambdaidem.Discard
		o.Clock = func() time.Time { return time.Now().Add(-30 * time.Minute) }
	})
	for _, operation := range []string{"charge", "refund"} {
		idemtest.Crash(t, 10*time.Second, func(ctx context.Context) {
			_, _ = lambdaidem.Do(ctx, guard, lambdaidem.Call{Operation: operation, Key: "k"}, func(ctx context.Context) (int, error) {
				crashing.Kill(ctx)
				return 1, nil
			})
		})
	}
	var written, logged bytes.Buffer
	look := watch.Handler(store, func(o *watch.Options) {
		o.Routes, o.Log = []string{"charge", "notify"}, slog.New(slog.NewTextHandler(&logged, nil))
		o.Metrics = emf.New(func(o *emf.Options) { o.Service, o.Function, o.Writer = "shop", "watch", &written })
	})
	if err := look(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"service":"shop","function":"watch","TTLDisabled":0`,
		`"service":"shop","function":"watch","DeadLeases":2,`,
		`"route":"charge","DeadLeases":1,`, `"route":"notify","DeadLeases":0,`, `"route":"(none)","DeadLeases":1,`,
	} {
		if strings.Count(written.String(), want) != 1 {
			t.Errorf("the metrics have no %s:\n%s", want, &written)
		}
	}
	for _, operation := range []string{"charge", "refund"} {
		if id := guard.RecordID(lambdaidem.Identity{Operation: operation, Key: "k"}); strings.Count(logged.String(), id) != 1 {
			t.Errorf("the log has no record %s:\n%s", id, &logged)
		}
	}
}

// Without a table the handler returns the error and writes no metrics.
func TestO2_TheHandlerFailsWithoutATable(t *testing.T) {
	client, table := newTable(t)
	var written bytes.Buffer
	look := watch.Handler(dynamostore.New(client, table+"-none", indexed), func(o *watch.Options) {
		o.Log = slog.New(slog.DiscardHandler)
		o.Metrics = emf.New(func(o *emf.Options) { o.Writer = &written })
	})
	err := look(t.Context())
	if failure, ok := errors.AsType[*lambdaidem.StoreError](err); !ok || failure.Reason != lambdaidem.ReasonNoTable || written.Len() > 0 {
		t.Errorf("%v, and wrote %q", err, &written)
	}
}

// The handler keeps to Options.Rate: three requests take at least two intervals.
func TestHandler_KeepsItsRate(t *testing.T) {
	client, table := newTable(t)
	store := dynamostore.New(client, table, indexed, func(o *dynamostore.Options) { o.LeaseShards = 3 })
	took := func(rate float64) time.Duration {
		began := time.Now()
		err := watch.Handler(store, func(o *watch.Options) {
			o.Rate, o.Log, o.Metrics = rate, slog.New(slog.DiscardHandler), emf.New(func(o *emf.Options) { o.Writer = &bytes.Buffer{} })
		})(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	if d := took(10); d < 200*time.Millisecond {
		t.Errorf("3 requests at 10 a second took %v", d)
	}
}

func TestHandler_RefusesWhatCannotBe(t *testing.T) {
	client, table := newTable(t)
	store := dynamostore.New(client, table, indexed)
	for want, of := range map[string]func(){
		"store is nil": func() { watch.Handler(nil) },
		"Options.Rate is -1; it must be at least": func() { watch.Handler(store, func(o *watch.Options) { o.Rate = -1 }) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, "watch: Handler: "+want) {
					t.Errorf("the panic is %s, want %s", got, want)
				}
			}()
			of()
		}()
	}
}
