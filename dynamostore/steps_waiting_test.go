package dynamostore

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// A takeover gets no reply and arrives while the call waits. The call then finds its own lease by a
// read, which returns only the names of encrypted steps. The handler must not run with empty
// results. A retry runs with the stored results.
func TestE4_StepsOfALeaseThatIsFoundByWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openShifted(t)
		runs, fails := map[string]int{}, true
		step := func(ctx context.Context, name string) (string, error) {
			return lambdaidem.Step(ctx, name, func(context.Context) (string, error) { runs[name]++; return "receipt " + name, nil })
		}
		handler := func(ctx context.Context) (string, error) {
			if fails {
				_, err := step(ctx, "a")
				return "", lambdaidem.Retryable(errors.Join(err, errors.New("later")))
			}
			b, errB := step(ctx, "b")
			a, errA := step(ctx, "a")
			return a + ", " + b, errors.Join(errA, errB)
		}
		if _, err := d.pay(t, d.guard(New(d.client, d.table, encrypted("k1"))), handler); err == nil {
			t.Fatal("the first attempt succeeded")
		}
		fails = false
		var late func() (*http.Response, error)
		arrived := false
		client := d.through(func(r *http.Request, _ []byte, send func() (*http.Response, error)) (*http.Response, error) {
			_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
			switch {
			case arrived:
			case operation == "UpdateItem" && late == nil:
				late = send
				return nil, errors.New("connection reset by peer")
			case operation == "UpdateItem":
				return answer(http.StatusBadRequest, `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionConflictException","message":"busy"}`), nil
			case operation == "GetItem" && late != nil:
				if _, err := late(); err != nil {
					t.Error(err)
				}
				arrived = true
			}
			return send()
		})
		if got, err := d.pay(t, d.guard(New(client, d.table, encrypted("k2", "k1")), func(o *lambdaidem.Options) { o.Wait = 5 * time.Second }), handler); !errors.Is(err, lambdaidem.ErrInProgress) {
			t.Errorf("the call that waited returned %q, %v", got, err)
		}
		if !arrived {
			t.Error("the takeover never arrived")
		}
		got, err := d.pay(t, d.guard(New(d.client, d.table, encrypted("k2", "k1"))), handler)
		if err != nil || got != "receipt a, receipt b" || runs["a"] != 1 || runs["b"] != 1 {
			t.Errorf("the retry returned %q, %v; the steps ran %v times", got, err, runs)
		}
	})
}
