package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The tests of this file have a request that fails open, and whose handler ends with a final
// failure. The client gets the failure only if no other attempt has carried out the request, or may
// still do so.

var cardDeclined = lambdaidem.Reject(402, "card_declined", "no money")

func noMoney(context.Context) (string, error) { return "", cardDeclined }

// Two duplicates run without a lease. The first to return fails for good. The record has its
// failure then, so the other one writes nothing, and both clients get the failure. The record may
// have been free because there was none, or because an earlier request has failed. Options.Outcome
// may call a 402 a success, so that it is stored.
func TestX5_AFinalFailureAfterFailOpenIsStored(t *testing.T) {
	for name, c := range map[string]struct {
		before func(context.Context) (string, error)
		rule   func(*lambdaidem.Response) lambdaidem.Outcome
	}{
		"no record":              {},
		"a released record":      {before: failing},
		"the outcome is success": {rule: func(*lambdaidem.Response) lambdaidem.Outcome { return lambdaidem.OutcomeSucceeded }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := openCreditDesk(t, func(o *lambdaidem.Options) { o.FailOpen, o.Outcome = true, c.rule })
				if c.before != nil {
					if got, err := d.credit(t, 0, c.before); err == nil {
						t.Fatalf("the earlier request gets %q", got)
					}
				}
				d.cutOff(30 * time.Second) // no claim gets through
				var slower error
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					_, slower = d.credit(t, time.Minute, well)
				}()
				time.Sleep(15 * time.Second)
				_, err := lambdaidem.Do(t.Context(), d.guard, lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (string, error) {
					time.Sleep(25 * time.Second)
					return noMoney(ctx)
				})
				<-ended
				for _, err := range []error{err, slower} {
					if !errors.Is(err, lambdaidem.Code("card_declined")) {
						t.Errorf("a client gets %v; want card_declined", err)
					}
				}
				d.wantBalance(t, 0)
			})
		})
	}
}

// The attempt's claim was applied, and the reply to it was lost. The record gets the failure of the
// attempt that holds it.
func TestX5_AFinalFailureAfterFailOpenIsStoredOverItsOwnClaim(t *testing.T) {
	for _, policy := range []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Hold} {
		t.Run(string(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := openCreditDesk(t)
				client := d.through(func(r *http.Request, _ []byte, send func() (*http.Response, error)) (*http.Response, error) {
					resp, err := send()
					if isOperation(r, opPutItem) {
						return nil, errors.New("connection reset by peer")
					}
					return resp, err
				})
				d.guard = d.shiftedDesk.guard(New(client, d.table), func(o *lambdaidem.Options) { o.FailOpen, o.Policy = true, policy })
				if _, err := d.credit(t, 0, noMoney); !errors.Is(err, lambdaidem.Code("card_declined")) {
					t.Errorf("the client gets %v; want card_declined", err)
				}
				if rec := d.inspect(t).Record; rec.State != lambdaidem.Completed {
					t.Errorf("the record is %s; want %s", rec.State, lambdaidem.Completed)
				}
			})
		})
	}
}

// The claim and the transaction that stores the final failure are throttled. The failure is stored
// and told when the throttling ends. A duplicate that ran beside it credits nothing.
func TestX5_AFinalFailureAfterFailOpenWaitsForTheEndOfThrottling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openCreditDesk(t)
		start := time.Now()
		client := d.through(func(r *http.Request, _ []byte, send func() (*http.Response, error)) (*http.Response, error) {
			if time.Since(start) < 2*time.Second && !isOperation(r, opGetItem) {
				return throttledReply(), nil
			}
			return send()
		})
		d.guard = d.shiftedDesk.guard(New(client, d.table), func(o *lambdaidem.Options) { o.FailOpen = true })
		var slower error
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, slower = d.credit(t, time.Minute, well)
		}()
		_, err := d.credit(t, time.Second, noMoney)
		<-ended
		for _, err := range []error{err, slower} {
			if !errors.Is(err, lambdaidem.Code("card_declined")) {
				t.Errorf("a client gets %v; want card_declined", err)
			}
		}
		d.wantBalance(t, 0)
	})
}

// A transaction is delayed, and its client is told that the outcome is unknown. The retry fails
// open too, and fails for good. The delayed transaction arrives after that, and writes nothing.
func TestX5_AFinalFailureAfterFailOpenPrecedesADelayedTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openCreditDesk(t)
		var delayed []func() (*http.Response, error)
		isDelayed := true
		client := d.through(func(r *http.Request, _ []byte, send func() (*http.Response, error)) (*http.Response, error) {
			switch {
			case isOperation(r, "TransactWriteItems") && isDelayed:
				delayed = append(delayed, send)
				fallthrough
			case isOperation(r, opPutItem):
				return nil, errors.New("connection reset by peer")
			}
			return send()
		})
		d.guard = d.shiftedDesk.guard(New(client, d.table), func(o *lambdaidem.Options) { o.FailOpen = true })
		if _, err := d.credit(t, 0, well); !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		isDelayed = false
		if _, err := d.credit(t, 0, noMoney); !errors.Is(err, lambdaidem.Code("card_declined")) {
			t.Errorf("the retry gets %v; want card_declined", err)
		}
		resp, err := delayed[0]()
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("the delayed transaction gets %d; want 400", resp.StatusCode)
		}
		d.wantBalance(t, 0)
	})
}

// The condition of an enlisted write fails, and the write's error is a final failure. Nobody knows
// whether the transaction with this failure was applied, so the client does not get the failure.
func TestX5_ARejectionAfterFailOpenIsToldOnlyIfItIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openCreditDesk(t)
		transactions := 0
		client := d.through(func(r *http.Request, _ []byte, send func() (*http.Response, error)) (*http.Response, error) {
			if isOperation(r, "TransactWriteItems") {
				if transactions++; transactions == 1 {
					return send()
				}
			}
			return nil, errors.New("connection reset by peer")
		})
		g := d.shiftedDesk.guard(New(client, d.table), func(o *lambdaidem.Options) { o.FailOpen = true })
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, err := lambdaidem.Do(ctx, g, lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (string, error) {
			Enlist(ctx).CheckValue("account", "accounts", map[string]string{"id": "nobody"}, "attribute_exists(id)", nil).Else(cardDeclined)
			return "moved", nil
		})
		if !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
			t.Errorf("the client gets %v; want ErrOutcomeUnknown", err)
		}
	})
}

// The store replies, but the attempt can't store its answer: it has no key for encryption, or the
// table throttles the parts of the answer. Meanwhile another process has carried out the request.
// The client is not told of a final failure. It gets the stored answer instead of a failure for
// which the record was to be released.
func TestX5_ARequestThatCantBeStoredAfterFailOpen(t *testing.T) {
	keys := StaticKeys(keyOf("k1"))
	noKey := keys
	noKey.Current = func(context.Context) (Key, error) { return Key{}, errors.New("the key service is throttled") }
	for name, options := range map[string]struct{ own, others func(*Options) }{
		"no key": {func(o *Options) { o.Encryption = noKey }, func(o *Options) { o.Encryption = keys }},
		"parts":  {func(o *Options) { o.MaxInline = 1 }, func(*Options) {}},
	} {
		for answer, end := range map[string]func(context.Context) (string, error){
			"a final failure":          noMoney,
			"a failure to be released": func(context.Context) (string, error) { return "", errors.New("broken") },
			"402, released":            func(context.Context) (string, error) { return "", lambdaidem.Retryable(cardDeclined) },
		} {
			t.Run(name+", "+answer, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := openCreditDesk(t)
					client := d.through(func(r *http.Request, body []byte, send func() (*http.Response, error)) (*http.Response, error) {
						if !isOperation(r, opPutItem) {
							return send()
						}
						if bytes.Contains(body, []byte(`"part"`)) {
							return throttledReply(), nil
						}
						return nil, errors.New("connection reset by peer") // the claim gets no reply
					})
					pay := func(s *Store, fn func(context.Context) (string, error)) (string, error) {
						g := d.shiftedDesk.guard(s, func(o *lambdaidem.Options) { o.FailOpen = true })
						return lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "pay", Key: "k"}, fn)
					}
					got, err := pay(New(client, d.table, options.own), func(ctx context.Context) (string, error) {
						if got, err := pay(New(d.client, d.table, options.others), well); got != "moved" {
							t.Errorf("the other process: %q, %v", got, err)
						}
						return end(ctx)
					})
					switch {
					case answer == "a final failure":
						if errors.Is(err, lambdaidem.Code("card_declined")) || err == nil && got != "moved" {
							t.Errorf("the client gets %q, %v", got, err)
						}
					case got != "moved":
						t.Errorf("the client gets %q, %v; want the answer of the record", got, err)
					}
				})
			})
		}
	}
}

// failOpenBeside sends a request whose claim gets no reply. While its handler runs, another process
// carries out the same request: the account is credited. The handler of the first request then ends
// with end. The function fault decides what becomes of the requests that follow.
func failOpenBeside(t *testing.T, end func(context.Context) (string, error), fault func(*http.Request, func() (*http.Response, error)) (*http.Response, error)) (string, error) {
	t.Helper()
	d := openCreditDesk(t)
	hasRun := false
	client := d.through(func(r *http.Request, _ []byte, send func() (*http.Response, error)) (*http.Response, error) {
		switch {
		case !hasRun && isOperation(r, opPutItem):
			return nil, errors.New("connection reset by peer")
		case !hasRun:
			return send()
		}
		return fault(r, send)
	})
	g := d.shiftedDesk.guard(New(client, d.table), func(o *lambdaidem.Options) { o.FailOpen = true })
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	got, err := lambdaidem.Do(ctx, g, lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (string, error) {
		if got, err := d.credit(t, 0, well); got != "moved" {
			t.Errorf("the other process: %q, %v", got, err)
		}
		hasRun = true
		return end(ctx)
	})
	d.wantBalance(t, 40)
	return got, err
}

// The reply to the write that stores the answer has the record that the other process has
// completed. The read after it is throttled. The client gets the answer of that record.
func TestX5_TheAnswerThatRefusedTheCompletionIsReplayedIfTheReadAfterItFails(t *testing.T) {
	for name, end := range map[string]func(context.Context) (string, error){
		"402":           noMoney,
		"402, released": func(context.Context) (string, error) { return "", lambdaidem.Retryable(cardDeclined) },
		"success":       func(context.Context) (string, error) { return "moved again", nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, err := failOpenBeside(t, end, func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
					if isOperation(r, opGetItem) {
						return throttledReply(), nil
					}
					return send()
				})
				if got != "moved" {
					t.Errorf("the client gets %q, %v; want the answer of the record", got, err)
				}
			})
		})
	}
}

// As before, but the other attempt is still running. The client is not told that the card was
// declined: the account is credited afterwards.
func TestX5_AnAttemptInProgressThatRefusedTheCompletionIsToldIfTheReadAfterItFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openCreditDesk(t)
		hasRun := false
		client := d.through(func(r *http.Request, _ []byte, send func() (*http.Response, error)) (*http.Response, error) {
			switch {
			case !hasRun && isOperation(r, opPutItem):
				return nil, errors.New("connection reset by peer")
			case hasRun && isOperation(r, opGetItem):
				return throttledReply(), nil
			}
			return send()
		})
		g := d.shiftedDesk.guard(New(client, d.table), func(o *lambdaidem.Options) { o.FailOpen = true })
		ended := make(chan struct{})
		_, err := lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (string, error) {
			go func() {
				defer close(ended)
				if got, err := d.credit(t, 5*time.Second, well); got != "moved" {
					t.Errorf("the other process: %q, %v", got, err)
				}
			}()
			synctest.Wait() // the other attempt has its lease
			hasRun = true
			return noMoney(ctx)
		})
		if !errors.Is(err, lambdaidem.ErrInProgress) {
			t.Errorf("the client gets %v; want ErrInProgress", err)
		}
		<-ended
		d.wantBalance(t, 40)
	})
}

func throttledReply() *http.Response {
	return answer(http.StatusBadRequest, `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"slow down"}`)
}

// A table with strong consistency in several Regions (docs/regions.md, MRSC) refuses all
// transactions. While the guard's claims are throttled, a final failure can't be stored, and is not
// told. After that, it is.
func TestD3_AFinalFailureAfterFailOpenInATableWithoutTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openCreditDesk(t)
		db := memdynamo.New(d.now)
		d.client = dynamodb.New(dynamodb.Options{
			Region: "eu-west-1", HTTPClient: &memdynamo.Client{DB: db},
			Credentials: d.client.Options().Credentials,
		})
		if err := CreateTable(t.Context(), d.client, d.table); err != nil {
			t.Fatal(err)
		}
		db.Global(d.table, memdynamo.Strong, "eu-west-1", "eu-north-1", "eu-central-1")
		throttled := true
		client := d.through(func(r *http.Request, _ []byte, send func() (*http.Response, error)) (*http.Response, error) {
			if throttled && isOperation(r, opPutItem) {
				return throttledReply(), nil
			}
			return send()
		})
		d.guard = d.shiftedDesk.guard(New(client, d.table), func(o *lambdaidem.Options) { o.FailOpen = true })
		for _, want := range []lambdaidem.Code{lambdaidem.ErrOutcomeUnknown, "card_declined"} {
			_, err := lambdaidem.Do(t.Context(), d.guard, lambdaidem.Call{Operation: "pay", Key: "k"}, noMoney)
			if !errors.Is(err, want) {
				t.Errorf("the client gets %v; want %s", err, want)
			}
			throttled = false
		}
	})
}
