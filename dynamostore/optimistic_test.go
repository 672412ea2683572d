package dynamostore

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

func optimistic(o *lambdaidem.Options) { o.Optimistic = true }

// transferID returns the id of the record that the bank's do uses for key.
func (b *bank) transferID(key string) string {
	return b.guard.RecordID(lambdaidem.Identity{Operation: "transfer", Key: key})
}

func (b *bank) record(t *testing.T, key string) lambdaidem.Record {
	t.Helper()
	rec, err := b.store.Get(t.Context(), b.transferID(key), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func TestE4_OneRoundTripForANewRequest(t *testing.T) {
	b := openBank(t, optimistic)
	for i := range 2 {
		got, err := b.do(t.Context(), "k", func(ctx context.Context) (string, error) {
			if n := lambdaidem.Attempt(ctx); n != 0 {
				t.Errorf("the attempt's number is %d", n)
			}
			return "moved", nil
		})
		if err != nil || got != "moved" {
			t.Fatalf("call %d: %q, %v", i, got, err)
		}
	}
	b.wantBalance(t, "alice", 70)
	if want := []string{"TransactWriteItems", "TransactWriteItems"}; !slices.Equal(b.wire.sent, want) {
		t.Errorf("sent %v; want %v", b.wire.sent, want)
	}
	if want := []lambdaidem.Kind{lambdaidem.EventNew, lambdaidem.EventReplayed}; !slices.Equal(b.events, want) {
		t.Errorf("events %v; want %v", b.events, want)
	}
	rec := b.record(t, "k")
	if rec.State != lambdaidem.Completed || rec.Attempt != 1 || rec.LeaseEnd.IsZero() || rec.Scope == "" || rec.StartedAt.IsZero() {
		t.Errorf("the record is %+v", rec)
	}
}

// The loser of a race gets the winner's answer, whatever its own answer is, even if the winner's
// writes make its conditions fail.
func TestE4_LoserOfARaceReplaysTheWinner(t *testing.T) {
	for name, end := range map[string]func(context.Context) (string, error){
		"well":      well,
		"error":     func(context.Context) (string, error) { return "", errors.New("lost") },
		"uncertain": func(context.Context) (string, error) { return "", lambdaidem.Uncertain(errors.New("lost")) },
		"failed":    func(context.Context) (string, error) { return "", lambdaidem.Reject(404, "lost", "") },
		"panic":     func(context.Context) (string, error) { panic("lost") },
	} {
		t.Run(name, func(t *testing.T) {
			b := openBank(t, optimistic)
			b.open(t, "alice", 30)
			got, err := b.do(t.Context(), "k", func(ctx context.Context) (string, error) {
				// Another call runs meanwhile and wins the race.
				if won, err := b.do(context.WithoutCancel(t.Context()), "k", func(context.Context) (string, error) { return "the winner's", nil }); err != nil || won != "the winner's" {
					t.Errorf("the winner: %q, %v", won, err)
				}
				return end(ctx)
			})
			if err != nil || got != "the winner's" {
				t.Errorf("the loser: %q, %v", got, err)
			}
			b.wantBalance(t, "alice", 0)
			b.wantBalance(t, "bob", 30)
		})
	}
}

// An error of a handler that lost no race is returned, after the guard has read the record.
func TestE4_ErrorsLeaveOnceTheRecordWasConsulted(t *testing.T) {
	b := openBank(t, optimistic)
	own := errors.New("no")
	for range 2 {
		if _, err := b.do(t.Context(), "k", func(context.Context) (string, error) { return "", own }); !errors.Is(err, own) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := b.do(t.Context(), "k", func(context.Context) (string, error) { return "", lambdaidem.Uncertain(own) }); !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
		t.Errorf("uncertain: %v", err)
	}
	func() {
		defer func() {
			if v := recover(); v != "own" {
				t.Errorf("recovered %v", v)
			}
		}()
		_, _ = b.do(t.Context(), "k", func(context.Context) (string, error) { panic("own") })
	}()
	if want := []string{"GetItem", "GetItem", "GetItem", "GetItem"}; !slices.Equal(b.wire.sent, want) {
		t.Errorf("sent %v; want %v", b.wire.sent, want)
	}
	b.wantBalance(t, "alice", 100)
	// If the record can't be read, no answer is returned.
	b.wire.after("GetItem", slices.Repeat([]fault{loseRequest}, 400)...)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := b.do(ctx, "k", func(context.Context) (string, error) { return "", own }); !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
		t.Errorf("not consulted: %v", err)
	}
}

func TestE4_FailedConditionsAreAnsweredAndStored(t *testing.T) {
	b := openBank(t, optimistic)
	b.open(t, "alice", 10)
	for range 2 {
		_, err := lambdaidem.Do(t.Context(), b.guard, lambdaidem.Call{Operation: "transfer", Key: "k"}, func(ctx context.Context) (string, error) {
			b.runs.Add(1)
			b.move(ctx).Else(lambdaidem.Reject(402, "insufficient_funds", ""))
			return "moved", nil
		})
		if !errors.Is(err, lambdaidem.Code("insufficient_funds")) {
			t.Errorf("got %v", err)
		}
		b.open(t, "alice", 1000) // does not change the stored answer
	}
	b.wantBalance(t, "alice", 1000)
	if rec := b.record(t, "k"); rec.Result.Outcome != lambdaidem.OutcomeFailed {
		t.Errorf("the record is %+v", rec)
	}
}

// stand puts a record of another attempt into the table.
func (b *bank) stand(t *testing.T, key, token string, lease time.Duration, change func(*lambdaidem.Claim)) {
	t.Helper()
	at := time.Now()
	c := lambdaidem.Claim{ID: b.transferID(key), Token: token, Fingerprint: b.fingerprint(t), Now: at, LeaseEnd: at.Add(lease), Expires: at.Add(time.Hour)}
	if change != nil {
		change(&c)
	}
	if rec, err := b.store.Acquire(t.Context(), c); err != nil || rec.Token != token {
		t.Fatalf("%+v, %v", rec, err)
	}
}

// fingerprint returns the fingerprint of calls of the bank's do.
func (b *bank) fingerprint(t *testing.T) string {
	t.Helper()
	if _, err := lambdaidem.Do(t.Context(), b.guard, lambdaidem.Call{Operation: "transfer", Key: "to see the fingerprint"}, func(context.Context) (string, error) {
		return "", nil
	}); err != nil {
		t.Fatal(err)
	}
	return b.record(t, "to see the fingerprint").Fingerprint
}

func TestE4_RecordsInTheWay(t *testing.T) {
	release := func(t *testing.T, b *bank) {
		t.Helper()
		l := lambdaidem.Lease{ID: b.transferID("k"), Token: "other", Expires: time.Now().Add(time.Hour)}
		if _, err := b.store.Release(t.Context(), l, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		lease  time.Duration
		change func(*lambdaidem.Claim)
		then   func(*testing.T, *bank)
		want   error // nil: the call commits
		events lambdaidem.Kind
	}{
		"in progress":   {time.Minute, nil, nil, lambdaidem.ErrInProgress, lambdaidem.EventInProgress},
		"died":          {-time.Second, nil, nil, nil, lambdaidem.EventTakenOver},
		"held":          {-time.Second, func(c *lambdaidem.Claim) { c.Expires = time.Time{} }, nil, lambdaidem.ErrAttemptAbandoned, lambdaidem.EventAbandoned},
		"released":      {time.Minute, nil, release, nil, lambdaidem.EventNew},
		"other payload": {time.Minute, func(c *lambdaidem.Claim) { c.Fingerprint = "another" }, nil, lambdaidem.ErrPayloadMismatch, lambdaidem.EventMismatch},
		"expired":       {-time.Hour, func(c *lambdaidem.Claim) { c.Expires = time.Now().Add(-time.Minute) }, nil, nil, lambdaidem.EventNew},
	} {
		t.Run(name, func(t *testing.T) {
			b := openBank(t, optimistic)
			b.stand(t, "k", "other", c.lease, c.change)
			if c.then != nil {
				c.then(t, b)
			}
			got, err := b.do(t.Context(), "k", well)
			want := 100
			if c.want == nil {
				want = 70
				if err != nil || got != "moved" {
					t.Errorf("got %q, %v", got, err)
				}
			} else if !errors.Is(err, c.want) {
				t.Errorf("got %v; want %v", err, c.want)
			}
			b.wantBalance(t, "alice", want)
			if !slices.Contains(b.events, c.events) {
				t.Errorf("events %v; want %v among them", b.events, c.events)
			}
			b.wantRuns(t, 1)
		})
	}
}

// The guard recognizes its own transaction after the reply was lost. If nothing shows whether the
// transaction was applied, the caller gets ErrOutcomeUnknown.
func TestE4_UnknownIsSettledByTheSameBytes(t *testing.T) {
	b := openBank(t, optimistic)
	b.wire.after("TransactWriteItems", loseReply, loseReply, loseReply, loseReply)
	if got, err := b.do(t.Context(), "k", well); err != nil || got != "moved" {
		t.Fatalf("got %q, %v", got, err)
	}
	b.wantBalance(t, "alice", 70)
	bodies := b.wire.bodies("TransactWriteItems")
	for _, body := range bodies {
		if body != bodies[0] {
			t.Error("other bytes were sent again")
		}
	}
	// The database has forgotten the token, but the record shows that the transaction was applied.
	b = openBank(t, optimistic)
	b.wire.after("TransactWriteItems", loseReply, otherToken)
	if got, err := b.do(t.Context(), "k", well); err != nil || got != "moved" {
		t.Fatalf("got %q, %v", got, err)
	}
	b.wantBalance(t, "alice", 70)

	b = openBank(t, optimistic)
	b.wire.after("TransactWriteItems", slices.Repeat([]fault{loseReply}, 400)...)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := b.do(ctx, "k", well); !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
		t.Fatalf("got %v", err)
	}
	b.wantBalance(t, "alice", 70)
}

// otherToken sends the transaction with a new token, as if the database had forgotten its token.
func otherToken(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
	body := bodyOf(r)
	_, rest, _ := strings.Cut(body, `"ClientRequestToken":"`)
	token, _, _ := strings.Cut(rest, `"`)
	setBody(r, strings.Replace(body, token, "x"+token[1:], 1))
	return next.Do(r)
}

func TestE4_OptionsThatContradictIt(t *testing.T) {
	b := openBank(t)
	for field, fn := range map[string]func(*lambdaidem.Options){
		"Policy":   func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold },
		"FailOpen": func(o *lambdaidem.Options) { o.FailOpen = true },
	} {
		func() {
			defer func() {
				if v, _ := recover().(string); !strings.Contains(v, "Options."+field) {
					t.Errorf("%s: %q", field, v)
				}
			}()
			b.guard.With(optimistic, fn)
		}()
	}
}

// A call that failed open commits its writes with the record, or not at all.
func TestE1_FailedOpenCommitsWithTheRecord(t *testing.T) {
	open := func(o *lambdaidem.Options) { o.FailOpen = true }
	unreachable := slices.Repeat([]fault{refuseConnection}, 3)
	t.Run("free", func(t *testing.T) {
		b := openBank(t, open)
		b.wire.after("PutItem", unreachable...)
		for range 2 {
			if got, err := b.do(t.Context(), "k", well); err != nil || got != "moved" {
				t.Errorf("got %q, %v", got, err)
			}
		}
		b.wantBalance(t, "alice", 70)
		b.wantRuns(t, 1)
	})
	for name, end := range map[string]func(context.Context) (string, error){"small": well, "in parts": large} {
		t.Run("its own lock had landed, "+name, func(t *testing.T) {
			b := openBank(t, open)
			b.wire.after("PutItem", loseReply, loseRequest, loseRequest)
			want, _ := end(t.Context())
			for range 2 {
				if got, err := b.do(t.Context(), "k", end); err != nil || got != want {
					t.Errorf("got %d bytes, %v", len(got), err)
				}
			}
			b.wantBalance(t, "alice", 70)
			b.wantRuns(t, 1)
		})
	}
	for name, faults := range map[string][]fault{
		"its own takeover had landed":     {loseReply, loseRequest, loseRequest},
		"its own takeover had not landed": {loseRequest, loseRequest, loseRequest},
	} {
		t.Run(name, func(t *testing.T) {
			b := openBank(t, open)
			died := lambdaidem.Uncertain(errors.New("died"))
			if _, err := b.do(t.Context(), "k", func(context.Context) (string, error) { return "", died }); !errors.Is(err, died) {
				t.Fatal(err)
			}
			o, err := b.store.Operator("alice", "a reason", func(o *OperatorOptions) { o.Force = true })
			if err != nil {
				t.Fatal(err)
			}
			inspected, err := b.store.Inspect(t.Context(), b.transferID("k"))
			if err != nil {
				t.Fatal(err)
			}
			if inspected, err = o.Release(t.Context(), inspected); err != nil {
				t.Fatal(err)
			}
			b.wire.after(opUpdateItem, faults...)
			if got, err := b.do(t.Context(), "k", well); err != nil || got != "moved" {
				t.Errorf("got %q, %v", got, err)
			}
			now, err := b.store.Inspect(t.Context(), b.transferID("k"))
			if err != nil {
				t.Fatal(err)
			}
			if now.Record.State != lambdaidem.Completed || now.Record.Attempt != 2 || now.Record.Bound != inspected.Record.Bound {
				t.Errorf("the record is %+v; want attempt 2, completed, bound by %q", now.Record, inspected.Record.Bound)
			}
			if diff := cmp.Diff(inspected.Operations, now.Operations); diff != "" {
				t.Errorf("the record's operations changed: -before +after\n%s", diff)
			}
		})
	}
	t.Run("completed by another", func(t *testing.T) {
		b := openBank(t, open)
		if _, err := b.do(t.Context(), "k", func(context.Context) (string, error) { return "the first", nil }); err != nil {
			t.Fatal(err)
		}
		b.wire.after("PutItem", unreachable...)
		if got, err := b.do(t.Context(), "k", well); err != nil || got != "the first" {
			t.Errorf("got %q, %v", got, err)
		}
		b.wantBalance(t, "alice", 70)
	})
	t.Run("held by another", func(t *testing.T) {
		b := openBank(t, open)
		b.stand(t, "k", "other", time.Minute, nil)
		b.wire.after("PutItem", unreachable...)
		if _, err := b.do(t.Context(), "k", well); !errors.Is(err, lambdaidem.ErrInProgress) {
			t.Errorf("got %v", err)
		}
		b.wantBalance(t, "alice", 100)
	})
	t.Run("unknown", func(t *testing.T) {
		b := openBank(t, open)
		b.wire.after("PutItem", unreachable...)
		b.wire.after("TransactWriteItems", slices.Repeat([]fault{loseReply}, 400)...)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if _, err := b.do(ctx, "k", well); !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
			t.Errorf("got %v", err)
		}
	})
}

// The completion of a released record preserves the operator's changes in its list of operations.
func TestO2_AnOptimisticClaimKeepsTheOperatorsJournal(t *testing.T) {
	b := openBank(t, optimistic)
	b.stand(t, "k", "other", -time.Minute, nil)
	o, err := b.store.Operator("alice", "ticket 4711")
	if err != nil {
		t.Fatal(err)
	}
	inspected, err := b.store.Inspect(t.Context(), b.transferID("k"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Release(t.Context(), inspected); err != nil {
		t.Fatal(err)
	}
	if _, err := b.do(t.Context(), "k", well); err != nil {
		t.Fatal(err)
	}
	inspected, err = b.store.Inspect(t.Context(), b.transferID("k"))
	if err != nil {
		t.Fatal(err)
	}
	if rec := inspected.Record; rec.State != lambdaidem.Completed || rec.Attempt != 2 || rec.Token == "other" {
		t.Errorf("the record is %+v", rec)
	}
	if ops := inspected.Operations; len(ops) != 1 || ops[0].What != OperationReleased || ops[0].By != "alice" {
		t.Errorf("the journal is %+v; want alice's release", ops)
	}
}

// If no connection can be made, the transaction is not applied, and the attempt keeps its lease.
func TestX4_TransactionThatNeverHappenedIsUnknownToTheCaller(t *testing.T) {
	b := openBank(t)
	b.wire.after("TransactWriteItems", slices.Repeat([]fault{refuseConnection}, 400)...)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := b.do(ctx, "k", well); !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
		t.Errorf("got %v", err)
	}
	b.wantBalance(t, "alice", 100)
	if rec := b.record(t, "k"); rec.State != lambdaidem.InProgress {
		t.Errorf("the record is %+v; want its lease kept", rec)
	}
}

// The table of an enlisted write is missing. Nothing was written, and the error names the write and
// the table, so the record is released. Under Hold, the record keeps its lease, because the handler
// may have had other effects before.
func TestE3_MissingTableIsNamed(t *testing.T) {
	for policy, want := range map[lambdaidem.Policy]lambdaidem.State{lambdaidem.Rerun: lambdaidem.Released, lambdaidem.Hold: lambdaidem.InProgress} {
		for _, writes := range []int{1, 2} {
			b := openBank(t, func(o *lambdaidem.Options) { o.Policy = policy })
			_, err := lambdaidem.Do(t.Context(), b.guard, lambdaidem.Call{Operation: "transfer", Key: "k"}, func(ctx context.Context) (string, error) {
				tx := Enlist(ctx)
				tx.PutValue("one", "no-such-table", account{"carol", 1})
				if writes == 2 {
					tx.PutValue("two", b.accounts, account{"carol", 1})
				}
				return "moved", nil
			})
			if !errors.Is(err, lambdaidem.ErrWriteInvalid) || !strings.Contains(err.Error(), `"one"`) || !strings.Contains(err.Error(), "no-such-table") {
				t.Errorf("%s, %d writes: got %v", policy, writes, err)
			}
			if n := len(b.wire.bodies("TransactWriteItems")); n != 1 {
				t.Errorf("it was sent %d times; asking again can only end alike", n)
			}
			if rec := b.record(t, "k"); rec.State != want {
				t.Errorf("%s: the record is %s, want %s", policy, rec.State, want)
			}
		}
	}
}

// For an attempt without a lease, the missing table may be the table of the records.
func TestE4_AMissingTableMayBeThatOfTheRecords(t *testing.T) {
	b := openBank(t, optimistic)
	b.wire.after("TransactWriteItems", apiError("ResourceNotFoundException"))
	if _, err := b.do(t.Context(), "k", well); !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
		t.Errorf("got %v", err)
	}
}

// large is a handler whose answer is stored in parts.
func large(context.Context) (string, error) {
	return base64.StdEncoding.EncodeToString([]byte(noise(300_000))), nil
}

// The parts of an answer are written before the transaction that refers to them.
func TestR3_TransactionsTakeLargeAnswersAlong(t *testing.T) {
	for name, opt := range map[string]func(*lambdaidem.Options){"lock": func(*lambdaidem.Options) {}, "optimistic": optimistic} {
		t.Run(name, func(t *testing.T) {
			b := openBank(t, opt)
			first, err := b.do(t.Context(), "k", large)
			if err != nil || len(first) != 400_000 {
				t.Fatalf("%d bytes, %v", len(first), err)
			}
			sent := slices.Index(b.wire.sent, "TransactWriteItems")
			if parts := len(b.wire.bodies("PutItem")); parts < 2 || slices.Contains(b.wire.sent[sent:], "PutItem") {
				t.Errorf("sent %v", b.wire.sent)
			}
			again, err := b.do(t.Context(), "k", large)
			if err != nil || again != first {
				t.Errorf("%d bytes, %v", len(again), err)
			}
			b.wantBalance(t, "alice", 70)
		})
	}
}

// Before an optimistic attempt writes the parts of its answer, it reads the record. If it has lost
// the race, it writes no parts.
func TestE4_LargeAnswerConsultsTheRecordFirst(t *testing.T) {
	b := openBank(t, optimistic)
	got, err := b.do(t.Context(), "k", func(ctx context.Context) (string, error) {
		if _, err := b.do(t.Context(), "k", func(context.Context) (string, error) { return "the winner's", nil }); err != nil {
			t.Error(err)
		}
		return large(ctx)
	})
	if err != nil || got != "the winner's" {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if parts := b.wire.bodies("PutItem"); len(parts) > 0 {
		t.Errorf("%d parts were written", len(parts))
	}
	b.wantBalance(t, "alice", 70)
}
