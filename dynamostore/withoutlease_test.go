package dynamostore

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
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
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".PutItem") {
			d.puts.Add(1)
		}
		return send()
	})
	d.guard = d.shiftedDesk.guard(New(client, d.table), optFns...)
	return d
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
