package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// desk is a table with a guard, and an operator who examines its records.
type desk struct {
	store  *Store
	client *dynamodb.Client
	table  string
	guard  *lambdaidem.Guard
	clock  time.Time // the guard's clock
	runs   int
}

func openDesk(t *testing.T, optFns ...func(*Options)) *desk {
	t.Helper()
	d := &desk{clock: time.Now().Add(-10 * time.Minute)} // the leases have ended by the database's clock
	d.client, d.table = freshTable(t, optFns...)
	d.store = New(d.client, d.table, append([]func(*Options){patient}, optFns...)...)
	d.guard = lambdaidem.New(d.store, func(o *lambdaidem.Options) {
		o.Namespace, o.Observer, o.Clock = "shop", lambdaidem.Discard, func() time.Time { return d.clock }
	})
	return d
}

var errLater = errors.New("later")

// id returns the id of the record that do uses for key.
func (d *desk) id(key string) string {
	return d.guard.RecordID(lambdaidem.Identity{Operation: "pay", Key: key})
}

// do calls the guarded operation with a handler that returns what the function end returns.
func (d *desk) do(t *testing.T, g *lambdaidem.Guard, key string, end func(context.Context) (string, error)) (string, error) {
	t.Helper()
	return lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "pay", Key: key}, func(ctx context.Context) (string, error) {
		d.runs++
		return end(ctx)
	})
}

// die leaves the record of an attempt that died after a step.
func (d *desk) die(t *testing.T, key string) {
	t.Helper()
	_, err := d.do(t, d.guard, key, func(ctx context.Context) (string, error) {
		if _, err := lambdaidem.Step(ctx, "card", func(context.Context) (int, error) { return 7, nil }); err != nil {
			return "", err
		}
		return "", lambdaidem.Uncertain(errLater)
	})
	if !errors.Is(err, errLater) {
		t.Fatal(err)
	}
}

func (d *desk) inspect(t *testing.T, id string) Inspected {
	t.Helper()
	inspected, err := d.store.Inspect(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return inspected
}

func (d *desk) operator(t *testing.T, name string, optFns ...func(*OperatorOptions)) *Operator {
	t.Helper()
	o, err := d.store.Operator(name, "ticket 4711", optFns...)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// settled is an answer of an operator.
var settled = lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, Value: []byte(`"settled"`)}

func TestO2_SettledAnswerIsWhatEveryRetryGets(t *testing.T) {
	d := openDesk(t)
	d.die(t, "k")
	inspected := d.inspect(t, d.id("k"))
	if inspected.Record.State != lambdaidem.InProgress || string(inspected.Record.Steps["card"]) != "7" {
		t.Fatalf("it was shown as %+v", inspected.Record)
	}
	done, err := d.operator(t, "alice", func(o *OperatorOptions) { o.TTL = 48 * time.Hour }).Settle(t.Context(), inspected, settled)
	if err != nil {
		t.Fatal(err)
	}
	if done.Record.State != lambdaidem.Completed || done.Record.Token == inspected.Record.Token || done.Record.Fingerprint != inspected.Record.Fingerprint {
		t.Errorf("it became %+v", done.Record)
	}
	if ttl := done.Record.Expires.Sub(done.Now); ttl < 48*time.Hour || ttl > 48*time.Hour+10*time.Second {
		t.Errorf("it expires %v from now by the database's clock; want 48h", ttl)
	}
	if diff := cmp.Diff(done.Record, d.inspect(t, d.id("k")).Record); diff != "" {
		t.Errorf("returned - stored +:\n%s", diff)
	}
	got, err := d.do(t, d.guard, "k", func(context.Context) (string, error) { return "ran again", nil })
	if got != "settled" || err != nil || d.runs != 1 {
		t.Errorf("a retry got %q, %v after %d runs", got, err, d.runs)
	}
	ops := d.inspect(t, d.id("k")).Operations
	want := []Operation{{What: OperationSettled, By: "alice", Reason: "ticket 4711", At: ops[0].At, Attempt: 1, Token: done.Record.Token}}
	if diff := cmp.Diff(want, ops); diff != "" {
		t.Errorf("want - kept +:\n%s", diff)
	}
	if off := done.Now.Sub(ops[0].At); off < -time.Minute || off > time.Minute {
		t.Errorf("the operation was at %v; the database's clock said %v", ops[0].At, done.Now)
	}
}

func TestO2_ReleasedRecordRunsAgainWithItsSteps(t *testing.T) {
	d := openDesk(t)
	d.die(t, "k")
	if _, err := d.operator(t, "alice").Release(t.Context(), d.inspect(t, d.id("k"))); err != nil {
		t.Fatal(err)
	}
	got, err := d.do(t, d.guard, "k", func(ctx context.Context) (string, error) {
		if lambdaidem.Attempt(ctx) != 2 {
			t.Errorf("the retry is attempt %d; want 2", lambdaidem.Attempt(ctx))
		}
		_, err := lambdaidem.Step(ctx, "card", func(context.Context) (int, error) {
			t.Error("a stored step ran again (E5)")
			return 0, nil
		})
		return "ran again", err
	})
	if got != "ran again" || err != nil {
		t.Errorf("a retry got %q, %v", got, err)
	}
	if ops := d.inspect(t, d.id("k")).Operations; len(ops) != 1 || ops[0].What != OperationReleased || ops[0].Attempt != 1 {
		t.Errorf("after the retry's completion the record has %+v of its operations", ops)
	}
}

// The first attempt passes on a downstream key and is released, the second one dies. Its
// record then refuses more payloads than a downstream key alone would: after a deployment
// that changes how fingerprints are made, nobody can tell whether the payload is the same.
func TestO2_AReleasedRecordOfADeadAttemptIsBoundByItsDeathNotByADownstreamKey(t *testing.T) {
	d := openDesk(t)
	for _, end := range []func(error) error{lambdaidem.Retryable, lambdaidem.Uncertain} {
		if _, err := d.do(t, d.guard, "k", func(ctx context.Context) (string, error) {
			lambdaidem.DownstreamKey(ctx, "card")
			return "", end(errLater)
		}); !errors.Is(err, errLater) {
			t.Fatal(err)
		}
	}
	inspected := d.inspect(t, d.id("k"))
	if inspected.Record.State != lambdaidem.InProgress || inspected.Record.Bound != lambdaidem.BoundByDownstreamKey {
		t.Fatalf("the record is %s, bound by %q", inspected.Record.State, inspected.Record.Bound)
	}
	done, err := d.operator(t, "alice").Release(t.Context(), inspected)
	if err != nil || done.Record.Bound != lambdaidem.BoundByDeadAttempt {
		t.Fatalf("released: it is bound by %q, %v", done.Record.Bound, err)
	}
	deployed := d.guard.With(func(o *lambdaidem.Options) { o.FingerprintSecrets = [][]byte{[]byte("a secret of 16 or more")} })
	if _, err := d.do(t, deployed, "k", nil); !errors.Is(err, lambdaidem.ErrPayloadMismatch) {
		t.Errorf("a payload that can't be compared got %v; want ErrPayloadMismatch", err)
	}
}

func TestO2_HeldRecordWaitsForItsOperator(t *testing.T) {
	d := openDesk(t)
	hold := d.guard.With(func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold })
	if _, err := d.do(t, hold, "k", func(context.Context) (string, error) { return "", errLater }); !errors.Is(err, errLater) {
		t.Fatal(err)
	}
	d.clock = time.Now()
	if _, err := d.do(t, hold, "k", nil); !errors.Is(err, lambdaidem.ErrAttemptAbandoned) {
		t.Fatalf("it is not held: %v", err)
	}
	inspected := d.inspect(t, d.id("k"))
	if !inspected.Record.Expires.IsZero() {
		t.Fatalf("a held record expires at %v", inspected.Record.Expires)
	}
	done, err := d.operator(t, "alice").Release(t.Context(), inspected)
	if err != nil || done.Record.Expires.IsZero() {
		t.Fatalf("released: %+v, %v", done.Record, err)
	}
	if got, err := d.do(t, hold, "k", func(context.Context) (string, error) { return "again", nil }); got != "again" || err != nil {
		t.Errorf("a retry got %q, %v", got, err)
	}
}

func TestO2_OfTwoOperatorsOneWinsAndTheOtherIsTold(t *testing.T) {
	d := openDesk(t)
	for range 20 {
		d.die(t, "k")
		inspected := d.inspect(t, d.id("k"))
		var (
			both [2]Inspected
			errs [2]error
			wait sync.WaitGroup
		)
		for i, name := range []string{"alice", "bob"} {
			o := d.operator(t, name)
			wait.Go(func() {
				own := settled
				own.Value = []byte(`"by ` + name + `"`)
				both[i], errs[i] = o.Settle(t.Context(), inspected, own)
			})
		}
		wait.Wait()
		won, lost := 0, 1
		if errs[0] != nil {
			won, lost = 1, 0
		}
		if errs[won] != nil || !errors.Is(errs[lost], ErrRecordChanged) {
			t.Fatalf("they got %v and %v", errs[0], errs[1])
		}
		if diff := cmp.Diff(both[won].Record, both[lost].Record); diff != "" {
			t.Errorf("the winner has - the other is told +:\n%s", diff)
		}
		if _, err := d.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(d.table), Key: d.store.key(d.id("k"))}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestL3_LateCompletionLosesToTheOperator(t *testing.T) {
	for name, act := range map[string]func(*desk, Inspected) error{
		"settle": func(d *desk, inspected Inspected) error {
			_, err := d.operator(t, "alice").Settle(t.Context(), inspected, settled)
			return err
		},
		"release": func(d *desk, inspected Inspected) error {
			_, err := d.operator(t, "alice").Release(t.Context(), inspected)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := openDesk(t)
			got, err := d.do(t, d.guard, "k", func(context.Context) (string, error) {
				return "late", act(d, d.inspect(t, d.id("k")))
			})
			if name == "settle" && (got != "settled" || err != nil) {
				t.Errorf("the late attempt answered %q, %v; want the record's answer (X6)", got, err)
			}
			if name == "release" && !errors.Is(err, lambdaidem.ErrInProgress) {
				t.Errorf("the late attempt answered %q, %v; want ErrInProgress (X6)", got, err)
			}
		})
	}
}

func TestO2_OperatorAfterALateCompletionIsTold(t *testing.T) {
	d := openDesk(t)
	var inspected Inspected
	if _, err := d.do(t, d.guard, "k", func(context.Context) (string, error) {
		inspected = d.inspect(t, d.id("k"))
		return "done", nil
	}); err != nil {
		t.Fatal(err)
	}
	for name, verb := range map[string]func(*Operator) (Inspected, error){
		"release": func(o *Operator) (Inspected, error) { return o.Release(t.Context(), inspected) },
		"settle":  func(o *Operator) (Inspected, error) { return o.Settle(t.Context(), inspected, settled) },
	} {
		now, err := verb(d.operator(t, "alice"))
		if !errors.Is(err, ErrRecordChanged) || now.Record.State != lambdaidem.Completed || string(now.Record.Result.Value) != `"done"` {
			t.Errorf("%s: %+v, %v; want the completed record and ErrRecordChanged", name, now.Record, err)
		}
	}
}

// dated is a wire that changes the date of all responses, as if the database's clock differed from
// this machine's.
type dated struct {
	next dynamodb.HTTPClient
	by   time.Duration
	none bool
}

func (c dated) Do(r *http.Request) (*http.Response, error) {
	resp, err := c.next.Do(r)
	if err != nil {
		return resp, err
	}
	resp.Header.Set("Date", time.Now().Add(c.by).UTC().Format(http.TimeFormat))
	if c.none {
		resp.Header.Del("Date")
	}
	return resp, nil
}

// Only the database's clock decides whether a lease is live, not this machine's.
func TestO2_LiveLeaseIsRefusedByTheDatabasesClock(t *testing.T) {
	const lease = 62 * time.Second // Options.LeaseDuration and MaxSkew
	for _, c := range []struct {
		name string
		by   time.Duration
		skew time.Duration // OperatorOptions.MaxSkew
		live bool
	}{
		{"live", 0, 0, true},
		{"live, the database behind", -time.Hour, 0, true},
		{"just over", lease + time.Second, 0, true},
		{"over by more than MaxSkew", lease + 4*time.Second, 0, false},
		{"over by less than another MaxSkew", lease + 4*time.Second, time.Minute, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := openDesk(t)
			d.clock = time.Now()
			d.die(t, "k")
			users := d.client.Options()
			apart := New(dynamodb.New(users, func(o *dynamodb.Options) { o.HTTPClient = dated{next: users.HTTPClient, by: c.by} }), d.table, patient)
			inspected, err := apart.Inspect(t.Context(), d.id("k"))
			if err != nil {
				t.Fatal(err)
			}
			o, err := apart.Operator("alice", "a reason", func(o *OperatorOptions) { o.MaxSkew = c.skew })
			if err != nil {
				t.Fatal(err)
			}
			live := (*LeaseLiveError)(nil)
			if _, err = o.Settle(t.Context(), inspected, settled); errors.As(err, &live) != c.live || !c.live && err != nil {
				t.Fatalf("got %v; live: %v", err, c.live)
			}
			if !c.live {
				return
			}
			if _, err = o.Release(t.Context(), inspected); !errors.As(err, &live) {
				t.Fatalf("got %v", err)
			}
			if left := live.Left(); left <= 0 || left > lease+time.Hour+time.Minute {
				t.Errorf("it is told to wait for %v", left)
			}
			if diff := cmp.Diff(inspected.Record, d.inspect(t, d.id("k")).Record); diff != "" {
				t.Errorf("the refusal changed the record: before - after +:\n%s", diff)
			}
		})
	}
}

func TestO2_ForceEndsALiveLeaseAndSaysSo(t *testing.T) {
	d := openDesk(t)
	d.clock = time.Now()
	got, err := d.do(t, d.guard, "k", func(context.Context) (string, error) {
		done, err := d.operator(t, "alice", func(o *OperatorOptions) { o.Force = true }).Settle(t.Context(), d.inspect(t, d.id("k")), settled)
		if len(done.Operations) != 1 || !done.Operations[0].Forced {
			t.Errorf("the record keeps %+v", done.Operations)
		}
		return "own", err
	})
	if got != "settled" || err != nil {
		t.Errorf("the attempt answered %q, %v; want the record's answer", got, err)
	}
}

func TestO2_RefusesWhatIsNotThereAndWhatIsDone(t *testing.T) {
	d := openDesk(t)
	o := d.operator(t, "alice")
	if _, err := o.Release(t.Context(), d.inspect(t, d.id("none"))); !errors.Is(err, ErrRecordGone) {
		t.Errorf("of no record: %v", err)
	}
	if _, err := d.do(t, d.guard, "done", func(context.Context) (string, error) { return "done", nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Settle(t.Context(), d.inspect(t, d.id("done")), settled); !errors.Is(err, ErrRecordCompleted) {
		t.Errorf("of a completed one: %v", err)
	}
	if _, err := o.Release(t.Context(), d.inspect(t, d.id("done"))); !errors.Is(err, ErrRecordCompleted) {
		t.Errorf("of a completed one: %v", err)
	}
	_, _ = d.do(t, d.guard, "free", func(context.Context) (string, error) { return "", errLater })
	if _, err := o.Release(t.Context(), d.inspect(t, d.id("free"))); !errors.Is(err, ErrRecordReleased) {
		t.Errorf("of a released one: %v", err)
	}
	if _, err := o.Settle(t.Context(), d.inspect(t, d.id("free")), settled); err != nil {
		t.Errorf("a released one can be settled: %v", err)
	}
	byHand := Inspected{Record: d.inspect(t, d.id("done")).Record, Now: time.Now()}
	if _, err := o.Settle(t.Context(), byHand, settled); !errors.Is(err, errNotInspected) {
		t.Errorf("of what nobody was shown: %v", err)
	}
	d.clock = time.Now().Add(-2 * time.Hour)
	d.guard = d.guard.With(func(o *lambdaidem.Options) { o.TTL = lambdaidem.MinTTL })
	d.die(t, "expired")
	if inspected := d.inspect(t, d.id("expired")); !inspected.Record.GoneAt(inspected.At()) {
		t.Errorf("it has not expired: %+v", inspected.Record)
	} else if _, err := o.Settle(t.Context(), inspected, settled); !errors.Is(err, ErrRecordGone) {
		t.Errorf("of an expired one: %v", err)
	}
}

func TestO2_SettleWantsTheFormOfTheRecord(t *testing.T) {
	d := openDesk(t)
	d.die(t, "k")
	inspected := d.inspect(t, d.id("k"))
	if _, err := d.operator(t, "alice").Settle(t.Context(), inspected, lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, Value: []byte(`{"a":`)}); err == nil {
		t.Error("an answer that is no JSON was stored")
	}
	if diff := cmp.Diff(inspected.Record, d.inspect(t, d.id("k")).Record); diff != "" {
		t.Errorf("the refusal changed the record: before - after +:\n%s", diff)
	}
}

// An operator may settle a record with a large answer.
func TestO2_SettledAnswerMayBeLarge(t *testing.T) {
	d := openDesk(t, func(o *Options) { o.CompressFrom = 1 << 30 })
	d.die(t, "k")
	text := strings.Repeat("x", 500<<10)
	if _, err := d.operator(t, "alice").Settle(t.Context(), d.inspect(t, d.id("k")), lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, Value: []byte(`"` + text + `"`)}); err != nil {
		t.Fatal(err)
	}
	if got, err := d.do(t, d.guard, "k", nil); got != text || err != nil {
		t.Errorf("a retry got %d bytes, %v", len(got), err)
	}
}

// The SDK retries a request without a reply. If the outcome is unknown, the error says so.
func TestO2_LostRepliesOfOperators(t *testing.T) {
	d := openDesk(t)
	d.die(t, "k")
	client, w := over(d.client)
	s := New(client, d.table, patient, quick)
	o, err := s.Operator("alice", "a reason")
	if err != nil {
		t.Fatal(err)
	}
	inspected := d.inspect(t, d.id("k"))
	w.after("UpdateItem", loseReply)
	done, err := o.Settle(t.Context(), inspected, settled)
	if err != nil || done.Record.State != lambdaidem.Completed {
		t.Errorf("after a lost reply: %+v, %v", done.Record, err)
	}
	// A retry runs before the SDK sends the release again. The release has been applied all the
	// same.
	d.die(t, "m")
	inspected = d.inspect(t, d.id("m"))
	w.after("UpdateItem", func(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
		resp, err := loseReply(r, next)
		d.die(t, "m")
		return resp, err
	})
	done, err = o.Release(t.Context(), inspected)
	if err != nil || done.Record.State != lambdaidem.InProgress || done.Record.Attempt != 2 {
		t.Errorf("after a lost reply and a retry: %+v, %v", done.Record, err)
	}
	d.die(t, "l")
	inspected = d.inspect(t, d.id("l"))
	w.after("UpdateItem", loseReply, loseRequest, loseRequest)
	_, err = o.Release(t.Context(), inspected)
	wantStoreError(t, err, opOperatorRelease, lambdaidem.ReasonUnreachable, false)
}

// A release was applied and its reply was lost. If the record has become another one before the
// next try, the release is not reported as refused.
func TestO2_AReleaseThatMayHaveBeenAppliedIsUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		first   fault
		then    func(*testing.T, *desk) // runs before the next try
		changed bool                    // the record proves that the release was not applied
	}{
		"the item is gone": {first: loseReply, then: func(t *testing.T, d *desk) { d.remove(t, "k") }},
		"a record of its own follows": {first: loseReply, then: func(t *testing.T, d *desk) {
			d.remove(t, "k")
			d.clock = d.clock.Add(time.Minute)
			d.die(t, "k")
		}},
		"another operator was faster": {first: loseRequest, changed: true, then: func(t *testing.T, d *desk) {
			if _, err := d.operator(t, "bob").Release(t.Context(), d.inspect(t, d.id("k"))); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d := openDesk(t)
			d.die(t, "k")
			client, w := over(d.client)
			o, err := New(client, d.table, patient, quick).Operator("alice", "a reason")
			if err != nil {
				t.Fatal(err)
			}
			w.after("UpdateItem", func(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
				resp, err := c.first(r, next)
				c.then(t, d)
				return resp, err
			})
			_, err = o.Release(t.Context(), d.inspect(t, d.id("k")))
			if c.changed {
				if !errors.Is(err, ErrRecordChanged) {
					t.Errorf("it was told %v", err)
				}
				return
			}
			wantStoreError(t, err, opOperatorRelease, lambdaidem.ReasonUnknown, false)
			if errors.Is(err, ErrRecordChanged) {
				t.Errorf("it was told that nothing was written: %v", err)
			}
		})
	}
}

// remove deletes the item of a record, like TTL does.
func (d *desk) remove(t *testing.T, key string) {
	t.Helper()
	_, err := d.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(d.table), Key: d.store.key(d.id(key))})
	if err != nil {
		t.Error(err)
	}
}

// If the reply to a write can't be used, the write may have been applied.
func TestX8_AnAppliedReleaseWithoutADateIsUnknown(t *testing.T) {
	d := openDesk(t)
	d.die(t, "k")
	users := d.client.Options()
	s := New(dynamodb.New(users, func(o *dynamodb.Options) { o.HTTPClient = dated{next: users.HTTPClient, none: true} }), d.table, patient)
	o, err := s.Operator("alice", "why")
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.Release(t.Context(), d.inspect(t, d.id("k")))
	wantStoreError(t, err, opOperatorRelease, lambdaidem.ReasonUnknown, false)
}

// A settled record lasts for at least the TTL, although its expiry is in whole seconds.
func TestL7_ASettledRecordLastsItsWholeTTL(t *testing.T) {
	d := openDesk(t)
	d.die(t, "k")
	inspected := d.inspect(t, d.id("k"))
	inspected.readAt = inspected.readAt.Add(-500 * time.Millisecond) // between two seconds
	done, err := d.operator(t, "alice", func(o *OperatorOptions) { o.TTL = 48 * time.Hour }).Settle(t.Context(), inspected, settled)
	if err != nil {
		t.Fatal(err)
	}
	if lasts := done.Record.Expires.Sub(done.Operations[0].At); lasts < 48*time.Hour || lasts > 48*time.Hour+time.Second {
		t.Errorf("it lasts %v", lasts)
	}
}

// The operator's TTL may be shorter than that of the functions. A record that would have lasted
// longer keeps its expiry, because a retry after the expiry runs the handler again.
func TestL7_AnOperatorNeverShortensTheLifeOfARecord(t *testing.T) {
	for name, act := range map[string]func(*Operator, Inspected) (Inspected, error){
		"release": func(o *Operator, inspected Inspected) (Inspected, error) { return o.Release(t.Context(), inspected) },
		"settle": func(o *Operator, inspected Inspected) (Inspected, error) {
			return o.Settle(t.Context(), inspected, settled)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := openDesk(t)
			d.guard = d.guard.With(func(o *lambdaidem.Options) { o.TTL = 72 * time.Hour })
			d.die(t, "k")
			inspected := d.inspect(t, d.id("k"))
			done, err := act(d.operator(t, "alice", func(o *OperatorOptions) { o.TTL = time.Hour }), inspected)
			if err != nil {
				t.Fatal(err)
			}
			if !done.Record.Expires.Equal(inspected.Record.Expires) {
				t.Errorf("it expired at %v, and expires at %v now", inspected.Record.Expires, done.Record.Expires)
			}
		})
	}
}

func TestO2_NoDateNoVerdict(t *testing.T) {
	d := openDesk(t)
	users := d.client.Options()
	s := New(dynamodb.New(users, func(o *dynamodb.Options) { o.HTTPClient = dated{next: users.HTTPClient, none: true} }), d.table, patient)
	_, err := s.Inspect(t.Context(), "x")
	wantStoreError(t, err, opInspect, lambdaidem.ReasonUnknown, true)
}

func TestO2_OperatorsSayWhoTheyAreAndWhy(t *testing.T) {
	s := New(dynamodb.New(dynamodb.Options{Region: "eu-west-1"}), "idempotency")
	for name, c := range map[string][2]string{
		"no name":         {" ", "why"},
		"no reason":       {"alice", ""},
		"a long name":     {strings.Repeat("a", MaxOperator+1), "why"},
		"a long reason":   {"alice", strings.Repeat("a", MaxReason+1)},
		"no UTF-8":        {"alice", "\xff"},
		"no UTF-8 either": {"\xff", "why"},
	} {
		if _, err := s.Operator(c[0], c[1]); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := s.Operator(strings.Repeat("a", MaxOperator), strings.Repeat("a", MaxReason)); err != nil {
		t.Error(err)
	}
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, "OperatorOptions.TTL is 14m59") {
			t.Errorf("a TTL below 15 minutes panicked with %q", text)
		}
	}()
	_, _ = s.Operator("alice", "why", func(o *OperatorOptions) { o.TTL = lambdaidem.MinTTL - time.Second })
}

// A record keeps only the latest operations, so that it doesn't grow without limit.
func TestO2_ARecordKeepsTheLatestOperations(t *testing.T) {
	d := openDesk(t)
	for i := range MaxOperations + 3 {
		d.clock = time.Now().Add(-time.Hour + time.Duration(i)*5*time.Minute)
		d.die(t, "k")
		if _, err := d.operator(t, "alice").Release(t.Context(), d.inspect(t, d.id("k"))); err != nil {
			t.Fatal(err)
		}
	}
	ops := d.inspect(t, d.id("k")).Operations
	if len(ops) != MaxOperations || ops[0].Attempt != 4 || ops[MaxOperations-1].Attempt != MaxOperations+3 {
		t.Errorf("%d operations, of attempts %d to %d", len(ops), ops[0].Attempt, ops[len(ops)-1].Attempt)
	}
}

// A version that knows no operations reads, replays, takes over and completes the records that an
// operator has changed, and preserves their operations.
func TestD4_OlderVersionsAndOperations(t *testing.T) {
	d := openDesk(t)
	old := lambdaidem.New(before{d.store}, func(o *lambdaidem.Options) {
		o.Namespace, o.Observer, o.Clock = "shop", lambdaidem.Discard, func() time.Time { return d.clock }
	})
	uncertain := func(context.Context) (string, error) { return "", lambdaidem.Uncertain(errLater) }
	for _, key := range []string{"settled", "released", "erased"} {
		_, _ = d.do(t, old, key, uncertain)
	}
	o := d.operator(t, "alice")
	for _, key := range []string{"settled", "erased"} {
		if _, err := o.Settle(t.Context(), d.inspect(t, d.id(key)), settled); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := o.Release(t.Context(), d.inspect(t, d.id("released"))); err != nil {
		t.Fatal(err)
	}
	for p, err := range o.Purge(t.Context(), func(p *PurgeOptions) {
		p.Match = func(rec lambdaidem.Record) bool { return rec.ID == d.id("erased") }
	}) {
		if err != nil || p.After == "" && p.Purged != 1 {
			t.Fatal(p, err)
		}
	}
	d.runs = 0
	again := func(context.Context) (string, error) { return "again", nil }
	if got, err := d.do(t, old, "settled", again); got != "settled" || err != nil {
		t.Errorf("settled: %q, %v", got, err)
	}
	if got, err := d.do(t, old, "released", again); got != "again" || err != nil || d.runs != 1 {
		t.Errorf("released: %q, %v after %d runs", got, err, d.runs)
	}
	if _, err := d.do(t, old, "erased", again); !errors.Is(err, lambdaidem.ErrAnswerUnavailable) || d.runs != 1 {
		t.Errorf("erased: %v after %d runs", err, d.runs)
	}
	if ops := d.inspect(t, d.id("released")).Operations; len(ops) != 1 {
		t.Errorf("the completion took the operations away: %+v", ops)
	}
}

// The operator's store has other attribute names than the functions' store. The operator
// must be told so and change nothing, because the store would look for answers and
// expirations in the wrong attributes.
func TestO2_AForgottenAttributeNameChangesNothing(t *testing.T) {
	for attribute, renamed := range map[string]func(*Options){
		attrData:       func(o *Options) { o.DataAttribute = "payload" },
		attrExpiration: func(o *Options) { o.ExpirationAttribute = "ttl" },
	} {
		t.Run(attribute, func(t *testing.T) {
			d := openDesk(t, renamed)
			_, _ = d.do(t, d.guard, "completed", answerOf("Jane Doe"))
			_, _ = d.do(t, d.guard, "released", func(context.Context) (string, error) { return "", errLater })
			before := d.scan(t)
			plain := New(d.client, d.table, patient)
			o, err := plain.Operator("bob", "TICKET-1")
			if err != nil {
				t.Fatal(err)
			}
			for _, forget := range []bool{false, true} {
				var last PurgeProgress
				for p, err := range o.Purge(t.Context(), func(po *PurgeOptions) {
					po.Forget = forget
					po.Match = func(r lambdaidem.Record) bool { return r.State == lambdaidem.Completed }
				}) {
					if err != nil {
						t.Fatal(err)
					}
					last = p
				}
				if last.Purged > 0 || last.Foreign == 0 {
					t.Errorf("forget %v: %+v; want the record to be foreign", forget, last)
				}
			}
			if _, err := plain.Inspect(t.Context(), d.id("completed")); !isForeign(err) {
				t.Errorf("the completed record: %v; want it to be foreign", err)
			}
			if diff := cmp.Diff(before, d.scan(t), avOptions); diff != "" {
				t.Errorf("the table has changed: %s", diff)
			}
		})
	}
}

// A record in progress that has no expiration is held. A record whose expiration has
// another name than the store expects must not look like a held one.
func TestO2_AnExpiryUnderAnotherNameIsNotOverlooked(t *testing.T) {
	d := openDesk(t, func(o *Options) { o.ExpirationAttribute = "ttl" })
	d.die(t, "dead")
	_, _ = d.do(t, d.guard.With(func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold }), "held",
		func(context.Context) (string, error) { return "", lambdaidem.Uncertain(errLater) })
	plain := New(d.client, d.table, patient)
	_, err := plain.Inspect(t.Context(), d.id("dead"))
	wantStoreError(t, err, opInspect, lambdaidem.ReasonForeign, true)
	if err == nil || !strings.Contains(err.Error(), `"ttl" may be the expiration`) {
		t.Errorf("%v; want it to name the attribute", err)
	}
	if inspected, err := plain.Inspect(t.Context(), d.id("held")); err != nil || inspected.Record.State != lambdaidem.InProgress {
		t.Errorf("the held record: %+v, %v", inspected.Record, err)
	}
	if inspected, err := d.store.Inspect(t.Context(), d.id("dead")); err != nil || inspected.Record.Expires.IsZero() {
		t.Errorf("by the functions' own names: %+v, %v", inspected.Record, err)
	}
}

// hidesExpiry treats a number as an expiration only if it is a time in seconds within a hundred
// years after the end of the lease.
func TestO2_OnlyWhatCanBeAnExpiryIsTakenForOne(t *testing.T) {
	held := claim
	held.Expires = time.Time{}
	deletion := deletionOf(claim.LeaseEnd.Add(time.Minute)).n
	for name, c := range map[string]struct {
		value types.AttributeValue
		is    bool
	}{
		"a minute after the lease":  {number(deletion), true},
		"a year after the lease":    {number(deletion + 365*24*60*60), true},
		"before the lease's end":    {number(deletionOf(claim.LeaseEnd.Add(-time.Minute)).n), false},
		"milliseconds":              {number(claim.LeaseEnd.Add(time.Hour).UnixMilli()), false},
		"a count":                   {number(7), false},
		"text":                      {str(strconv.FormatInt(deletion, 10)), false},
		"a number that is too long": {&types.AttributeValueMemberN{Value: "1e99"}, false},
	} {
		itm := claimed(held)
		attrs := standardLayout.attributes(itm)
		attrs["extra"] = c.value
		if err := hidesExpiry(itm, attrs); isForeign(err) != c.is || !c.is && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if itm := claimed(claim); hidesExpiry(itm, attributes{"extra": number(deletion)}) != nil {
		t.Error("a record that has its expiry is taken for one without")
	}
}

// scan returns all items of the table.
func (d *desk) scan(t *testing.T) []map[string]types.AttributeValue {
	t.Helper()
	out, err := d.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(d.table), ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	return out.Items
}

// A record has changed since the operator read it. The record that Release returns has the
// database's time now, and not that of the operator's read.
func TestO2_AChangedRecordHasTheDatabasesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openShifted(t)
		d.offset = time.Hour
		d.die(t)
		inspected := d.inspect(t)
		time.Sleep(10 * time.Minute)
		d.die(t)
		now, err := d.operator(t).Release(t.Context(), inspected)
		if !errors.Is(err, ErrRecordChanged) {
			t.Fatal(err)
		}
		if behind := d.now().Sub(now.At()); behind < 0 || behind > time.Second {
			t.Errorf("At is %v behind the database's clock", behind)
		}
	})
}
