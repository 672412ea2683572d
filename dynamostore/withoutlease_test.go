package dynamostore

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The tests in this file use times that only Lambda Managed Instances permit: an invocation may
// last 90 minutes.

// creditDesk is a database in memory, with an account that handlers credit by enlisted writes.
type creditDesk struct {
	*shiftedDesk
	unreachable atomic.Bool  // no request reaches the database
	puts        atomic.Int64 // how many PutItem requests have reached the database: locks, and parts of answers
	guard       *lambdaidem.Guard
}

func openCreditDesk(t *testing.T, optFns ...func(*lambdaidem.Options)) *creditDesk {
	t.Helper()
	d := &creditDesk{shiftedDesk: openShifted(t)}
	if err := CreateTable(t.Context(), d.client, "accounts"); err != nil {
		t.Fatal(err)
	}
	client := d.through(func(r *http.Request, _ []byte, send func() (*http.Response, error)) (*http.Response, error) {
		if d.unreachable.Load() {
			return nil, errors.New("connection reset by peer")
		}
		if isOperation(r, opPutItem) {
			d.puts.Add(1)
		}
		return send()
	})
	d.guard = d.shiftedDesk.guard(New(client, d.table), optFns...)
	return d
}

// cutOff makes the database unreachable for the given time.
func (d *creditDesk) cutOff(outage time.Duration) {
	d.unreachable.Store(true)
	go func() {
		time.Sleep(outage)
		d.unreachable.Store(false)
	}()
}

// credit credits the account with 40 in a guarded call whose handler runs for the given time. The
// handler ignores the end of its context.
func (d *creditDesk) credit(t *testing.T, takes time.Duration, end func(context.Context) (string, error)) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Minute)
	defer cancel()
	return lambdaidem.Do(ctx, d.guard, lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (string, error) {
		time.Sleep(takes)
		Enlist(ctx).UpdateValue("credit", "accounts", map[string]string{"id": "bob"}, "ADD balance :n", Args{":n": 40})
		return end(ctx)
	})
}

func (d *creditDesk) wantBalance(t *testing.T, want int) {
	t.Helper()
	out, err := d.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("accounts"), Key: map[string]types.AttributeValue{"id": str("bob")}})
	if err != nil {
		t.Fatal(err)
	}
	balance := "0"
	if n, ok := out.Item["balance"].(*types.AttributeValueMemberN); ok {
		balance = n.Value
	}
	if balance != strconv.Itoa(want) {
		t.Errorf("the balance is %s; want %d", balance, want)
	}
}

// creditTwice sends a request and, 20 seconds later, a retry whose handler returns at once. The
// first request begins while the database is unreachable, unless the guard is optimistic. It
// returns the answer of the first request.
func (d *creditDesk) creditTwice(t *testing.T, takes time.Duration, end func(context.Context) (string, error)) (string, error) {
	t.Helper()
	d.unreachable.Store(true)
	go func() {
		time.Sleep(20 * time.Second)
		d.unreachable.Store(false)
		if got, err := d.credit(t, 0, func(context.Context) (string, error) { return "the retry's", nil }); got != "the retry's" || err != nil {
			t.Errorf("the retry gets %q, %v", got, err)
		}
	}()
	return d.credit(t, takes, end)
}

// withoutLease lists the options with which an attempt runs without a lease.
var withoutLease = map[string]func(*lambdaidem.Options){
	"optimistic":  optimistic,
	"failed open": func(o *lambdaidem.Options) { o.FailOpen = true },
}

// A retry commits and is answered while an attempt without a lease is running. Its record has
// expired when that attempt commits, and refuses the commit all the same. The enlisted writes are
// made once.
func TestE1_AnAttemptWithoutALeaseIsRefusedByARecordThatExpiredMeanwhile(t *testing.T) {
	for name, kind := range withoutLease {
		for size, end := range map[string]func(context.Context) (string, error){"small": well, "large": large} {
			t.Run(name+", "+size, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := openCreditDesk(t, kind, func(o *lambdaidem.Options) { o.TTL = lambdaidem.MinTTL })
					if got, err := d.creditTwice(t, 20*time.Minute, end); got != "the retry's" || err != nil {
						t.Errorf("the first request gets %d bytes, %v; want the retry's answer", len(got), err)
					}
					d.wantBalance(t, 40)
					locks := 0
					if name == "failed open" {
						locks = 1 // of the retry
					}
					if puts := int(d.puts.Load()); puts != locks {
						t.Errorf("%d locks and parts were written; want %d, because the first request's answer can't be stored", puts, locks)
					}
				})
			})
		}
	}
}

// After 30 minutes an attempt without a lease sends no transaction: DynamoDB's TTL may delete the
// record of a retry before the transaction arrives.
func TestL7_AnAttemptWithoutALeaseCommitsWithin30Minutes(t *testing.T) {
	for name, kind := range withoutLease {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := openCreditDesk(t, kind, func(o *lambdaidem.Options) { o.TTL = time.Hour })
				if got, err := d.creditTwice(t, 70*time.Minute, well); name == "optimistic" && got != "the retry's" || name == "failed open" && !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
					t.Errorf("the first request gets %q, %v", got, err)
				}
				d.wantBalance(t, 40)
			})
		})
	}
}

// A record that had expired before the attempt began counts as absent.
func TestL7_AnAttemptWithoutALeaseClaimsARecordThatExpiredBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openCreditDesk(t, optimistic, func(o *lambdaidem.Options) { o.TTL = lambdaidem.MinTTL })
		for range 2 {
			if got, err := d.credit(t, 20*time.Minute, well); got != "moved" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
			rec := d.inspect(t).Record
			if completed := time.Now().Truncate(time.Millisecond); !rec.CompletedAt.Equal(completed) || !rec.StartedAt.Equal(completed.Add(-20*time.Minute)) || rec.Expires.Sub(completed) < lambdaidem.MinTTL {
				t.Errorf("at %v the record is %+v", completed, rec)
			}
			time.Sleep(lambdaidem.MinTTL + time.Second)
		}
		d.wantBalance(t, 80)
	})
}

// A request is answered. Its duplicate begins just before the answer expires, and runs without a
// lease. After the answer has expired, a third request takes over the record and fails. The record
// that it releases refuses the duplicate's writes, although it is free.
func TestE1_AnAttemptWithoutALeaseIsRefusedByARecordThatReplacedAnAnswer(t *testing.T) {
	type times struct {
		ttl, age, takes, third time.Duration // age: of the answer when the duplicate begins; third: when the third request comes, after that
	}
	for when, c := range map[string]times{
		"minimum TTL": {ttl: lambdaidem.MinTTL, age: 4 * time.Second, takes: 20 * time.Minute, third: 16 * time.Minute},
		"a day":       {ttl: 24 * time.Hour, age: 24*time.Hour - 10*time.Second, takes: 20 * time.Second, third: 15 * time.Second},
		"one second":  {ttl: 24 * time.Hour, age: 24*time.Hour - time.Second, takes: 20 * time.Second, third: time.Second},
	} {
		for kind, option := range withoutLease {
			t.Run(when+", "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := openCreditDesk(t, option, func(o *lambdaidem.Options) { o.TTL = c.ttl })
					if got, err := d.credit(t, 0, well); err != nil {
						t.Fatal(got, err)
					}
					time.Sleep(c.age)
					d.unreachable.Store(kind == "failed open")
					go func() {
						time.Sleep(c.third)
						d.unreachable.Store(false)
						withLease := &creditDesk{shiftedDesk: d.shiftedDesk}
						withLease.guard = d.shiftedDesk.guard(New(d.client, d.table), func(o *lambdaidem.Options) { o.TTL = c.ttl })
						if got, err := withLease.credit(t, 0, failing); err == nil {
							t.Errorf("the third request gets %q", got)
						}
					}()
					got, err := d.credit(t, c.takes, well)
					if !errors.Is(err, lambdaidem.ErrInProgress) {
						t.Errorf("the duplicate gets %q, %v; want ErrInProgress", got, err)
					}
					d.wantBalance(t, 40)
				})
			})
		}
	}
}

func failing(context.Context) (string, error) { return "", errors.New("no connection to the bank") }

// As before, but a fourth request fails too, and its clock is behind by a little less than
// the default of Options.MaxSkew. By that clock it began before the duplicate did.
func TestE1_AnAttemptWithoutALeaseIsRefusedAcrossClocks(t *testing.T) {
	for kind, option := range withoutLease {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := openCreditDesk(t, option)
				if got, err := d.credit(t, 0, well); err != nil {
					t.Fatal(got, err)
				}
				time.Sleep(24*time.Hour - time.Second) // the default of Options.TTL
				d.unreachable.Store(kind == "failed open")
				go func() {
					time.Sleep(time.Second)
					d.unreachable.Store(false)
					for _, behind := range []time.Duration{0, 2*time.Second - time.Millisecond} {
						withLease := &creditDesk{shiftedDesk: d.shiftedDesk}
						withLease.guard = d.shiftedDesk.guard(New(d.client, d.table), func(o *lambdaidem.Options) {
							o.Clock = func() time.Time { return time.Now().Add(-behind) }
						})
						if got, err := withLease.credit(t, 0, failing); err == nil {
							t.Errorf("a request whose clock is %v behind gets %q", behind, got)
						}
					}
				}()
				if got, err := d.credit(t, 20*time.Second, well); !errors.Is(err, lambdaidem.ErrInProgress) {
					t.Errorf("the duplicate gets %q, %v; want ErrInProgress", got, err)
				}
				d.wantBalance(t, 40)
			})
		})
	}
}

// A record that was released before the attempt began is taken over: no answer can have expired
// since.
func TestE1_AnAttemptWithoutALeaseTakesOverARecordThatWasReleasedBefore(t *testing.T) {
	for kind, option := range withoutLease {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := openCreditDesk(t, option)
				withLease := &creditDesk{shiftedDesk: d.shiftedDesk, guard: d.shiftedDesk.guard(New(d.client, d.table))}
				if got, err := withLease.credit(t, 0, failing); err == nil {
					t.Fatalf("the first request gets %q", got)
				}
				if kind == "failed open" {
					d.cutOff(5 * time.Second)
				}
				if got, err := d.credit(t, 20*time.Second, well); got != "moved" || err != nil {
					t.Errorf("the retry gets %q, %v", got, err)
				}
				d.wantBalance(t, 40)
			})
		})
	}
}

// An attempt fails open because the reply to its own claim is lost, seconds after it began. The
// record of that claim doesn't refuse the attempt's writes.
func TestE1_AnAttemptWithoutALeaseTakesOverItsOwnLateClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openCreditDesk(t)
		client := d.through(func(r *http.Request, _ []byte, send func() (*http.Response, error)) (*http.Response, error) {
			if !isOperation(r, opPutItem) {
				return send()
			}
			time.Sleep(2 * time.Second)
			if _, err := send(); err != nil {
				return nil, err
			}
			return nil, errors.New("connection reset by peer")
		})
		d.guard = d.shiftedDesk.guard(New(client, d.table), func(o *lambdaidem.Options) { o.FailOpen = true })
		if got, err := d.credit(t, time.Second, well); got != "moved" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		d.wantBalance(t, 40)
	})
}

// A request is answered. Its duplicate fails open while the answer is alive, and fails for good
// after the answer has expired. The caller does not get the failure, after which it would not ask
// again.
func TestX5_AFinalFailureAfterFailOpenIsNotToldIfAnAnswerExpiredMeanwhile(t *testing.T) {
	for name, failure := range map[string]error{
		"stored":   lambdaidem.Reject(402, "card_declined", "no money"),
		"released": lambdaidem.Retryable(lambdaidem.Reject(402, "card_declined", "no money")),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := openCreditDesk(t, func(o *lambdaidem.Options) { o.FailOpen = true })
				if got, err := d.credit(t, 0, well); err != nil {
					t.Fatal(got, err)
				}
				time.Sleep(24*time.Hour - 10*time.Second) // the default of Options.TTL is 24 hours
				d.cutOff(5 * time.Second)
				got, err := d.credit(t, 20*time.Second, func(context.Context) (string, error) { return "", failure })
				if errors.Is(err, lambdaidem.Code("card_declined")) {
					t.Errorf("the duplicate gets %q, %v", got, err)
				}
				d.wantBalance(t, 40)
			})
		})
	}
}

// A process is frozen for more than an hour while it writes the parts of an answer. Meanwhile a
// retry is answered, and TTL deletes its record. The transaction is not sent.
func TestE1_AProcessFrozenBeforeItsTransactionDoesNotSendIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openCreditDesk(t, optimistic, func(o *lambdaidem.Options) { o.TTL = lambdaidem.MinTTL })
		id := d.guard.RecordID(lambdaidem.Identity{Operation: "pay", Key: "k"})
		var wasFrozen atomic.Bool
		client := d.through(func(r *http.Request, _ []byte, send func() (*http.Response, error)) (*http.Response, error) {
			if isOperation(r, opPutItem) && wasFrozen.CompareAndSwap(false, true) {
				if got, err := d.credit(t, 0, well); err != nil {
					t.Errorf("the retry gets %q, %v", got, err)
				}
				time.Sleep(lambdaidem.MinTTL + lambdaidem.KeptAfterExpiry + time.Minute)
				if _, err := d.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(d.table), Key: attributes{"id": str(id)}}); err != nil {
					t.Error(err)
				}
			}
			return send()
		})
		tx, _ := New(client, d.table).Begin(rand.Reader).(*transaction)
		tx.enlisted.UpdateValue("credit", "accounts", map[string]string{"id": "bob"}, "ADD balance :n", Args{":n": 40})
		tx.Seal(lambdaidem.OutcomeSucceeded)
		answer, _ := large(t.Context())
		startedAt := time.Now().Truncate(time.Second)
		expires := startedAt.Add(time.Hour)
		_, err := tx.Commit(t.Context(), &lambdaidem.Completion{ // not by a guard, because its contexts would end
			Lease:  lambdaidem.Lease{ID: id, Token: "A", Scope: "shop Do pay", Expires: expires},
			Result: lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, Value: []byte(answer), At: startedAt, Expires: expires},
			Claim:  &lambdaidem.Claim{ID: id, Token: "A", Scope: "shop Do pay", Now: startedAt, LeaseEnd: startedAt, Expires: expires},
		})
		if !wasFrozen.Load() || !errors.Is(err, errTooLate) {
			t.Errorf("frozen: %t; Commit returned %v", wasFrozen.Load(), err)
		}
		d.wantBalance(t, 40)
	})
}

// DynamoDB can't be reached for ten minutes after the handler has returned. Then the transaction
// succeeds.
func TestE1_ATransactionSucceedsAfterALongOutage(t *testing.T) {
	for kind, option := range withoutLease {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := openCreditDesk(t, option)
				d.unreachable.Store(true)
				got, err := d.credit(t, 20*time.Second, func(context.Context) (string, error) {
					d.cutOff(10 * time.Minute)
					return "moved", nil
				})
				if got != "moved" || err != nil {
					t.Errorf("got %q, %v", got, err)
				}
				d.wantBalance(t, 40)
			})
		})
	}
}
