package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// failsAfter returns a handler that runs the named steps and then fails. Each step adds 1 to ran.
func failsAfter(ran *int, steps ...string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		for _, name := range steps {
			if _, err := lambdaidem.Step(ctx, name, func(context.Context) (string, error) { *ran++; return "ok", nil }); err != nil {
				return "", err
			}
		}
		return "", errLater
	}
}

// Three versions of a function run the attempts of one record in turn. Each attempt encrypts the
// steps again under the key of its version. The last version lacks the first key, or refuses plain
// text, and can read the steps all the same.
func TestS1_StepsAreEncryptedAnewByTheNextAttempt(t *testing.T) {
	plain := func(*Options) {}
	only := func(o *Options) {
		encrypted("new")(o)
		o.Encryption.Only = true
	}
	for name, deployed := range map[string][]func(*Options){
		"another key": {encrypted("old"), encrypted("new", "old"), encrypted("new")},
		"plain text":  {plain, encrypted("new"), only},
	} {
		t.Run(name, func(t *testing.T) {
			d, ran := openShifted(t), 0
			for _, version := range deployed {
				if _, err := d.pay(t, d.guard(New(d.client, d.table, version)), failsAfter(&ran, "charge", "mail")); !errors.Is(err, errLater) {
					t.Fatalf("%v; want the handler's own error", err)
				}
				d.offset += 20 * time.Hour // within the TTL of the last attempt, after that of the first
			}
			if ran != 2 {
				t.Errorf("steps ran %d times; want each of the two once", ran)
			}
		})
	}
}

// A takeover does not write the steps again if they are already encrypted under the current key, or
// if the store does not encrypt.
func TestS1_StepsUnderTheCurrentKeyAreLeftAlone(t *testing.T) {
	for name, version := range map[string]func(*Options){
		"the current key": encrypted("new", "old"),
		"plain text":      func(*Options) {},
	} {
		t.Run(name, func(t *testing.T) {
			d, ran, updates := openShifted(t), 0, 0
			s := New(d.through(func(r *http.Request, _ []byte, send func() (*http.Response, error)) (*http.Response, error) {
				if isOperation(r, opUpdateItem) {
					updates++
				}
				return send()
			}), d.table, version)
			for range 2 {
				_, _ = d.pay(t, d.guard(s), failsAfter(&ran, "charge"))
			}
			if updates != 4 {
				t.Errorf("%d updates; want a save and a release, a takeover and a release", updates)
			}
		})
	}
}

// The request that encrypts the steps under the current key gets no reply. The handler runs all the
// same and saves one more step. Then the request arrives, and must not remove the new step.
func TestS1_ALateResealTakesNoStepAway(t *testing.T) {
	d, ran := openShifted(t), 0
	_, _ = d.pay(t, d.guard(New(d.client, d.table, encrypted("old"))), failsAfter(&ran, "charge"))
	var late func() (status int)
	s := New(d.through(func(_ *http.Request, body []byte, send func() (*http.Response, error)) (*http.Response, error) {
		if late == nil && bytes.Contains(body, []byte("size(#steps) = :step_count")) {
			late = func() int {
				resp, err := send()
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				return resp.StatusCode
			}
			return nil, errors.New("connection reset by peer")
		}
		return send()
	}), d.table, quick, encrypted("new", "old"), func(o *Options) { o.Attempts = 1 })
	_, err := d.pay(t, d.guard(s), func(ctx context.Context) (string, error) {
		_, err := failsAfter(&ran, "charge", "mail")(ctx)
		if late == nil {
			t.Fatal("the steps were not encrypted anew before the handler ran")
		}
		if status := late(); status != http.StatusBadRequest {
			t.Errorf("the late request got status %d; want it to be refused", status)
		}
		return "", err
	})
	if !errors.Is(err, errLater) {
		t.Fatal(err)
	}
	if _, err := d.pay(t, d.guard(New(d.client, d.table, encrypted("new"))), failsAfter(&ran, "charge", "mail")); !errors.Is(err, errLater) || ran != 2 {
		t.Errorf("the third attempt: %v; steps ran %d times, want each once", err, ran)
	}
}

// Steps that would become too large by encryption stay in plain text, so that the record has room
// for what later attempts and operators add.
func TestS1_StepsThatEncryptionWouldMakeTooLargeAreLeftAlone(t *testing.T) {
	client, table := freshTable(t)
	plain, sealing := New(client, table, patient), New(client, table, patient, encrypted("new"))
	steps := lambdaidem.Steps{}
	for i := range 50 { // each grows by more than 65 bytes
		steps[fmt.Sprint("step ", i)] = []byte("1")
	}
	steps["page"] = bytes.Repeat([]byte("x"), maxStepsSize-2000)
	rec, err := plain.Acquire(t.Context(), claim)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = plain.SaveSteps(t.Context(), lease, steps, now); err != nil {
		t.Fatal(err)
	}
	if rec, err = plain.Release(t.Context(), lease, now); err != nil {
		t.Fatal(err)
	}
	next := claimBy("token-2")
	next.Over = &rec
	if rec, err = sealing.Acquire(t.Context(), next); err != nil || len(rec.Steps) != len(steps) {
		t.Fatalf("%d steps, %v", len(rec.Steps), err)
	}
	if itm, err := sealing.read(t.Context(), opGet, claim.ID); err != nil || itm.sealsSteps() {
		t.Errorf("the steps are encrypted, %v", err)
	}
}
