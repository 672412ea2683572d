package lambdaidem_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// delayed is a ledger whose transactions get no reply while down is set. late has their requests,
// which arrive later.
type delayed struct {
	*ledger
	down bool
	late []func() error
}

type delayedTx struct {
	*ledgerTx
	s *delayed
}

func (s *delayed) Begin(random io.Reader) lambdaidem.Tx {
	return &delayedTx{s.ledger.Begin(random).(*ledgerTx), s}
}

func (t *delayedTx) Commit(ctx context.Context, c *lambdaidem.Completion) (lambdaidem.Record, error) {
	if !t.s.down {
		return t.ledgerTx.Commit(ctx, c)
	}
	t.s.late = append(t.s.late, func() error { _, err := t.ledgerTx.Commit(context.WithoutCancel(ctx), c); return err })
	return requestLost(ctx, commit, nil)
}

// The first attempt of an order makes an optimistic Do, whose transaction is delayed on its way. In
// the second attempt, the Do's function fails, and the handler answers 402. Then the transaction
// arrives, and debits. The 402 must not be stored.
func TestE4_AFailureBesideAnOptimisticCallIsNotStored(t *testing.T) {
	for _, mode := range []string{"optimistic", "leased"} { // the same with a lease is safe
		t.Run(mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, l := withLedger(nil)
				s := &delayed{ledger: l}
				g := lambdaidem.New(s, quiet)
				inner := g
				if mode == "optimistic" {
					inner = g.With(optimistic)
				}
				fails := false
				h := g.APIGatewayV2(func(ctx context.Context, _ request) (response, error) {
					_, err := lambdaidem.Do(ctx, inner, lambdaidem.Call{Operation: "debit", Key: "k"}, func(ctx context.Context) (int, error) {
						if fails {
							return 0, errWire
						}
						tx, err := lambdaidem.TxOf(ctx)
						if err != nil {
							return 0, err
						}
						tx.(*delayedTx).enlist("debit")
						return 1, nil
					})
					if err != nil {
						return response{StatusCode: http.StatusPaymentRequired}, nil //nolint:nilerr // a failed call is a refused order
					}
					return response{StatusCode: http.StatusCreated}, nil
				})
				send := func() response {
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
					defer cancel()
					out, err := h(ctx, first())
					if err != nil {
						t.Fatal(err)
					}
					return out
				}
				s.down = true
				one := send()
				s.down = false
				time.Sleep(10 * time.Second) // Retry-After: the lease has ended
				fails = true
				two := send()
				fails = false
				arrived := s.late[0]() // 13 seconds late
				three := send()
				t.Logf("%d, %d, %d; arrived: %v, debited: %v", one.StatusCode, two.StatusCode, three.StatusCode, arrived, l.done)
				if len(l.done) > 0 && three.StatusCode == http.StatusPaymentRequired && replayed(three) {
					t.Errorf("debited %v; the client was told %d, then %d, and again %d (replayed)", l.done, one.StatusCode, two.StatusCode, three.StatusCode)
				}
			})
		})
	}
}
