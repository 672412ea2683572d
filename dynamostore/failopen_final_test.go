package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The tests of this file have a request that fails open, and whose handler ends with a final failure.
// The client gets the failure only if no other attempt has carried out the request, or may still do so.

var cardDeclined = lambdaidem.Reject(402, "card_declined", "no money")

func noMoney(context.Context) (string, error) { return "", cardDeclined }

func isOperation(r *http.Request, name string) bool {
	return strings.HasSuffix(r.Header.Get("X-Amz-Target"), "."+name)
}

// Two duplicates run without a lease. The first to return fails for good. The record has its failure
// then, so the other one writes nothing, and both clients get the failure.
func TestX5_AFinalFailureAfterFailOpenIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openCreditDesk(t, func(o *lambdaidem.Options) { o.FailOpen = true })
		d.cutOff(30 * time.Second) // no claim gets through
		var slower error
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, slower = d.credit(t, time.Minute, well)
		}()
		time.Sleep(15 * time.Second)
		_, err := d.credit(t, 25*time.Second, noMoney)
		<-ended
		for _, err := range []error{err, slower} {
			if !errors.Is(err, lambdaidem.Code("card_declined")) {
				t.Errorf("a client gets %v; want card_declined", err)
			}
		}
		d.wantBalance(t, 0)
	})
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
					if isOperation(r, "PutItem") {
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

// A transaction is delayed, and its client is told that the outcome is unknown. The retry fails open
// too, and fails for good. The delayed transaction arrives after that, and writes nothing.
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
			case isOperation(r, "PutItem"):
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

// The store replies, but the attempt can't store its answer: it has no key for encryption, or the
// table throttles the parts of the answer. Meanwhile another process has carried out the request. The
// client gets the stored answer, whatever its own attempt has returned.
func TestX5_ARequestThatCantBeStoredAfterFailOpenGetsTheAnswerOfTheRecord(t *testing.T) {
	keys := StaticKeys(keyOf("k1"))
	noKey := keys
	noKey.Current = func(context.Context) (Key, error) { return Key{}, errors.New("the key service is throttled") }
	for name, options := range map[string]struct{ own, others func(*Options) }{
		"no key": {func(o *Options) { o.Encryption = noKey }, func(o *Options) { o.Encryption = keys }},
		"parts":  {func(o *Options) { o.MaxInline = 1 }, func(*Options) {}},
	} {
		for answer, end := range map[string]func(context.Context) (string, error){
			"a final failure":             noMoney,
			"a failure that is not final": func(context.Context) (string, error) { return "", errors.New("broken") },
			"a success":                   func(context.Context) (string, error) { return "moved again", nil },
		} {
			t.Run(name+", "+answer, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := openCreditDesk(t)
					client := d.through(func(r *http.Request, body []byte, send func() (*http.Response, error)) (*http.Response, error) {
						if !isOperation(r, "PutItem") {
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
					if got != "moved" {
						t.Errorf("the client gets %q, %v; want the answer of the record", got, err)
					}
				})
			})
		}
	}
}

func throttledReply() *http.Response {
	return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}},
		Body: io.NopCloser(strings.NewReader(`{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"slow down"}`))}
}
