package e2e_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lambdaidem/toolkit/localstack/clearing"
	"github.com/lambdaidem/toolkit/localstack/stack"
)

// pair is two users with accounts, which only one test uses.
type pair struct{ from, to user }

func newPair(t *testing.T) pair {
	t.Helper()
	return pair{newUser(t), newUser(t)}
}

// transferOf returns the request for a transfer of 1250 from one user of the pair to the other.
// Words in the reference set the behavior of the clearing house; see localstack/clearing.
func (p pair) transferOf(key, reference string) request {
	return request{path: "/transfers", keys: []string{key},
		body: fmt.Sprintf(`{"to":%q,"amount":1250,"currency":"EUR","reference":%q}`, p.to, reference)}
}

// crashing returns the request with a header that makes the first attempt kill its process at a
// point of the handler.
func crashing(r request, at string) request {
	r.headers = map[string]string{"X-Demo-Crash": at}
	return r
}

// transfer is an item of the transfers table.
type transfer struct {
	ID     string `dynamodbav:"id"`
	From   string `dynamodbav:"from"`
	Amount int64  `dynamodbav:"amount"`
	Status string `dynamodbav:"status"`
}

func (p pair) transfers(t *testing.T) []transfer {
	t.Helper()
	var own []transfer
	for _, tr := range scan[transfer](t, "TransfersTable") {
		if tr.From == stack.Issuer+" "+string(p.from) {
			own = append(own, tr)
		}
	}
	return own
}

// effects returns what the clearing house did for the transfers of this pair.
func (p pair) effects(t *testing.T) []clearing.Effect {
	t.Helper()
	var own []clearing.Effect
	transfers := p.transfers(t)
	for _, e := range everything.Clearing().Effects() {
		for _, tr := range transfers {
			if e.Transfer == tr.ID {
				own = append(own, e)
			}
		}
	}
	return own
}

// expectMoney checks that no money was created or lost.
func (p pair) expectMoney(t *testing.T) {
	t.Helper()
	sum := p.from.balance(t) + p.to.balance(t)
	for _, tr := range p.transfers(t) {
		if tr.Status == "reserved" {
			sum += tr.Amount
		}
	}
	if sum != 2*opening {
		t.Errorf("accounts and reserved transfers have %d; want %d", sum, 2*opening)
	}
}

// expect checks the end of a transfer: that there is one transfer with this status, or none, that
// it had one effect in the clearing house, and which account has the money.
func (p pair) expect(t *testing.T, status string, moved int64) {
	t.Helper()
	all, effects := p.transfers(t), p.effects(t)
	if status == "" {
		if len(all) != 0 {
			t.Errorf("the transfers are %+v; want none", all)
		}
	} else if len(all) != 1 || all[0].Status != status || len(effects) != 1 || effects[0].Amount != 1250 {
		t.Errorf("the transfers are %+v, outside %+v; want one, %s, with one effect", all, effects, status)
	}
	p.from.expectBalance(t, opening-moved)
	p.to.expectBalance(t, opening+moved)
	if misuses := everything.Clearing().Misuses(); len(misuses) != 0 {
		t.Errorf("the clearing house was misused: %q", misuses)
	}
}

// insist repeats a request for up to a minute, until the response is neither a request to retry
// nor a server error.
func (u user) insist(t *testing.T, r request) answer {
	t.Helper()
	late := time.After(time.Minute)
	for {
		a := u.mustSend(t, r)
		if a.status < 500 && a.header.Get("Retry-After") == "" {
			return a
		}
		pause := 100 * time.Millisecond
		if seconds, err := strconv.Atoi(a.header.Get("Retry-After")); err == nil {
			pause = time.Duration(seconds) * time.Second
		}
		select {
		case <-time.After(pause):
		case <-late:
			t.Fatalf("after a minute the answer is still %d %s", a.status, a.body)
		}
	}
}

func TestR1_TransferTwiceIsOneTransferAndOneAnswer(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	first := p.from.mustSend(t, p.transferOf("t-1", "rent"))
	expectStatus(t, first, http.StatusCreated)
	if !strings.Contains(first.body, p.transfers(t)[0].ID) {
		t.Errorf("the answer %s does not name the transfer %+v", first.body, p.transfers(t))
	}
	expectReplay(t, first, p.from.mustSend(t, p.transferOf("t-1", "rent")))
	p.expect(t, "done", 1250)
}

func TestE2_TransferThatCannotBeIsRefusedBeforeAnybodyIsTold(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		with   func(t *testing.T, p pair) request
		status int
		code   string
	}{
		"without funds": {func(t *testing.T, p pair) request {
			t.Helper()
			p.from.open(t, 1249)
			return p.transferOf("t-1", "rent")
		}, http.StatusPaymentRequired, "insufficient_funds"},
		"without a recipient": {func(_ *testing.T, p pair) request {
			p.to += "-unknown"
			return p.transferOf("t-1", "rent")
		}, http.StatusNotFound, "recipient_not_found"},
		"without an account": {func(_ *testing.T, p pair) request {
			r := p.transferOf("t-1", "rent")
			r.body = strings.Replace(r.body, "EUR", "USD", 1)
			return r
		}, http.StatusNotFound, "account_not_found"},
		"to oneself": {func(_ *testing.T, p pair) request {
			return pair{p.from, p.from}.transferOf("t-1", "rent")
		}, http.StatusBadRequest, "transfer_invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			r := tt.with(t, p)
			first := p.from.mustSend(t, r)
			expectProblem(t, first, tt.status, tt.code)
			p.from.open(t, opening) // the stored refusal is replayed nevertheless
			expectReplay(t, first, p.from.mustSend(t, r))
			p.expect(t, "", 0)
		})
	}
}

func TestL8_TwoTransfersOfOneKeyAtOnceAreOne(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	var (
		first answer
		group errgroup.Group
	)
	group.Go(func() (err error) {
		first, err = p.from.send(t.Context(), p.transferOf("t-1", "delay=1500"))
		return err
	})
	p.from.awaitRecord(t)
	expectProblem(t, p.from.mustSend(t, p.transferOf("t-1", "delay=1500")), http.StatusConflict, "idempotency_in_progress")
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	expectStatus(t, first, http.StatusCreated)
	expectReplay(t, first, p.from.mustSend(t, p.transferOf("t-1", "delay=1500")))
	p.expect(t, "done", 1250)
}

// An attempt dies after an effect, at each point of the handler. The next attempt ends the
// transfer, and no effect happens twice.
func TestE5_TransferThatDiesIsEndedByARetry(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"reserved", "cleared", "ending"} {
		for reference, want := range map[string]struct {
			status int
			ends   string
			moved  int64
		}{
			"rent":   {http.StatusCreated, "done", 1250},
			"refuse": {http.StatusUnprocessableEntity, "refused", 0},
		} {
			t.Run(at+", "+reference, func(t *testing.T) {
				t.Parallel()
				p := newPair(t)
				r := crashing(p.transferOf("t-1", reference), at)
				expectStatus(t, p.from.mustSend(t, r), http.StatusInternalServerError) // the gateway's answer, because the process died
				if all := p.transfers(t); len(all) != 1 || all[0].Status != "reserved" {
					t.Errorf("after the crash the transfers are %+v; want one, reserved", all)
				}
				if n := len(p.effects(t)); (n == 1) != (at != "reserved") {
					t.Errorf("after the crash there are %d effects", n)
				}
				p.expectMoney(t)
				a := p.from.insist(t, r) // succeeds when the lease has ended
				expectStatus(t, a, want.status)
				expectReplay(t, a, p.from.mustSend(t, r))
				p.expect(t, want.ends, want.moved)
			})
		}
	}
}

func TestE6_ClearingHouseThatFailsIsAskedAgainUnderOneKey(t *testing.T) {
	t.Parallel()
	for reference, calls := range map[string]int{"fail=2": 3, "lose=2": 3, "delay=11000": 2} {
		t.Run(reference, func(t *testing.T) {
			t.Parallel()
			p := newPair(t)
			r := p.transferOf("t-1", reference)
			expectProblem(t, p.from.mustSend(t, r), http.StatusServiceUnavailable, "clearing_unavailable")
			p.expectMoney(t)
			// The key belongs to the reserved transfer, so another payload is refused.
			expectProblem(t, p.from.mustSend(t, p.transferOf("t-1", "other")), http.StatusUnprocessableEntity, "idempotency_payload_mismatch")
			a := p.from.insist(t, r)
			expectStatus(t, a, http.StatusCreated)
			expectReplay(t, a, p.from.mustSend(t, r))
			p.expect(t, "done", 1250)
			if effects := p.effects(t); len(effects) != 1 || effects[0].Calls != calls {
				t.Errorf("the effects are %+v; want one, of %d calls", effects, calls)
			}
		})
	}
}

func TestE1_RefusedTransferGivesTheMoneyBackWithTheAnswer(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	first := p.from.mustSend(t, p.transferOf("t-1", "refuse"))
	expectProblem(t, first, http.StatusUnprocessableEntity, "transfer_refused")
	expectReplay(t, first, p.from.mustSend(t, p.transferOf("t-1", "refuse")))
	p.expect(t, "refused", 0)
}

// Concurrent transfers in both directions between two accounts neither create nor lose money.
func TestG1_TransfersAtOnceMakeAndLoseNothing(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	back := pair{p.to, p.from}
	t.Run("transfers", func(t *testing.T) {
		for i := range 3 {
			for name, way := range map[string]pair{"there": p, "back": back} {
				t.Run(fmt.Sprintf("%s %d", name, i), func(t *testing.T) {
					t.Parallel()
					expectStatus(t, way.from.insist(t, way.transferOf(fmt.Sprintf("t-%d", i), "rent")), http.StatusCreated)
				})
			}
		}
	})
	p.from.expectBalance(t, opening)
	p.to.expectBalance(t, opening)
	if there, home := len(p.transfers(t)), len(back.transfers(t)); there != 3 || home != 3 {
		t.Errorf("%d and %d transfers; want 3 each", there, home)
	}
}
