package dynamostore

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

func again(o *OperatorOptions) { o.Again = true }

// corrected is a second answer of an operator.
var corrected = lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, Value: []byte(`"corrected"`)}

func TestO2_AnOperatorSettlesAgainWhatAnOperatorSettled(t *testing.T) {
	d := openDesk(t)
	d.die(t, "k")
	first, err := d.operator(t, "alice").Settle(t.Context(), d.inspect(t, d.id("k")), settled)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.operator(t, "bob").Settle(t.Context(), first, corrected); !errors.Is(err, ErrRecordSettled) {
		t.Errorf("unless told so: %v", err)
	}
	if _, err := d.operator(t, "bob", again).Release(t.Context(), first); !errors.Is(err, ErrRecordSettled) {
		t.Errorf("releasing it: %v", err)
	}
	second, err := d.operator(t, "bob", again).Settle(t.Context(), first, corrected)
	if err != nil {
		t.Fatal(err)
	}
	if second.Record.Token == first.Record.Token || second.Record.Fingerprint != first.Record.Fingerprint || second.Record.Attempt != first.Record.Attempt {
		t.Errorf("it became %+v", second.Record)
	}
	if ops := d.inspect(t, d.id("k")).Operations; len(ops) != 2 || ops[0].By != "alice" || ops[1].By != "bob" || ops[1].What != OperationSettled {
		t.Errorf("it keeps the operations %+v", ops)
	}
	got, err := d.do(t, d.guard, "k", func(context.Context) (string, error) { return "ran again", nil })
	if got != "corrected" || err != nil || d.runs != 1 {
		t.Errorf("a retry got %q, %v after %d runs", got, err, d.runs)
	}
	// An operator who has seen the first answer can't replace the second one.
	now, err := d.operator(t, "carol", again).Settle(t.Context(), first, settled)
	if !errors.Is(err, ErrRecordChanged) || now.Record.Token != second.Record.Token {
		t.Errorf("of what was shown before: %+v, %v", now.Record, err)
	}
	// An answer in parts is replaced too.
	large := lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, Value: []byte(`"` + base64.StdEncoding.EncodeToString([]byte(noise(500_000))) + `"`)}
	third, err := d.operator(t, "carol", again).Settle(t.Context(), second, large)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.operator(t, "carol", again).Settle(t.Context(), third, corrected); err != nil {
		t.Fatal(err)
	}
	if got, err := d.do(t, d.guard, "k", func(context.Context) (string, error) { return "ran again", nil }); got != "corrected" || err != nil {
		t.Errorf("a retry got %q, %v", got, err)
	}
}

// An answer of a handler never changes, and neither does a record whose answer was erased.
func TestG3_NobodySettlesAHandlersAnswerAgain(t *testing.T) {
	d := openDesk(t)
	if _, err := d.do(t, d.guard, "done", func(context.Context) (string, error) { return "done", nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := d.operator(t, "alice", again).Settle(t.Context(), d.inspect(t, d.id("done")), settled); !errors.Is(err, ErrRecordCompleted) {
		t.Errorf("a handler's: %v", err)
	}
	// An operator released this record, and a handler completed it afterwards.
	d.die(t, "retried")
	if _, err := d.operator(t, "alice").Release(t.Context(), d.inspect(t, d.id("retried"))); err != nil {
		t.Fatal(err)
	}
	if _, err := d.do(t, d.guard, "retried", func(context.Context) (string, error) { return "done", nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := d.operator(t, "alice", again).Settle(t.Context(), d.inspect(t, d.id("retried")), settled); !errors.Is(err, ErrRecordCompleted) {
		t.Errorf("a handler's after an operator's release: %v", err)
	}
	d.die(t, "erased")
	if _, err := d.operator(t, "alice").Settle(t.Context(), d.inspect(t, d.id("erased")), settled); err != nil {
		t.Fatal(err)
	}
	for _, err := range d.operator(t, "alice").Purge(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.operator(t, "alice", again).Settle(t.Context(), d.inspect(t, d.id("erased")), settled); !errors.Is(err, ErrRecordCompleted) {
		t.Errorf("an erased one: %v", err)
	}
}

// From its acquisition on, a record says that its answer will be encrypted, so nobody can settle it
// with an answer in plain text.
func TestS1_SettleWithoutAKeyIsRefusedWhereFunctionsEncrypt(t *testing.T) {
	d := openDesk(t, func(o *Options) { o.Encryption = StaticKeys(keyOf("k1")) })
	plain := New(d.client, d.table, patient)
	uncertain := func(context.Context) (string, error) { return "", lambdaidem.Uncertain(errLater) }
	_, _ = d.do(t, d.guard, "k", uncertain) // no step: the record contains nothing encrypted yet
	o, err := plain.Operator("alice", "ticket")
	if err != nil {
		t.Fatal(err)
	}
	inspected, err := plain.Inspect(t.Context(), d.id("k"))
	if err != nil || !inspected.Encrypted {
		t.Fatalf("%+v, %v", inspected, err)
	}
	if now, err := o.Settle(t.Context(), inspected, settled); !errors.Is(err, ErrNotEncrypted) {
		t.Errorf("without a key: %+v, %v", now.Record, err)
	}
	if d.inspect(t, d.id("k")).Record.Token != inspected.Record.Token {
		t.Error("the refusal changed the record")
	}
	done, err := d.operator(t, "alice").Settle(t.Context(), d.inspect(t, d.id("k")), settled)
	if err != nil || !done.Encrypted {
		t.Fatalf("with the key: %+v, %v", done, err)
	}
	if got, err := d.do(t, d.guard, "k", uncertain); got != "settled" || err != nil {
		t.Errorf("a retry got %q, %v", got, err)
	}
	// An operator without a key can't settle the record again either.
	repeat, err := plain.Operator("alice", "ticket", again)
	if err != nil {
		t.Fatal(err)
	}
	inspected, err = plain.Inspect(t.Context(), d.id("k"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := repeat.Settle(t.Context(), inspected, corrected); !errors.Is(err, ErrNotEncrypted) {
		t.Errorf("again, without a key: %v", err)
	}
	// A result without an answer needs no key.
	_, _ = d.do(t, d.guard, "no answer", uncertain)
	if inspected, err = plain.Inspect(t.Context(), d.id("no answer")); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Settle(t.Context(), inspected, lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, Failure: lambdaidem.NoAnswer("it is done")}); err != nil {
		t.Errorf("without an answer: %v", err)
	}
}

// A takeover by a function that encrypts marks the record as encrypted. A takeover by another
// function removes the mark.
func TestS1_TheMarkOfEncryptionIsThatOfTheLatestAttempt(t *testing.T) {
	d := openDesk(t)
	uncertain := func(context.Context) (string, error) { return "", lambdaidem.Uncertain(errLater) }
	encrypting := lambdaidem.New(New(d.client, d.table, patient, func(o *Options) { o.Encryption = StaticKeys(keyOf("k1")) }), func(o *lambdaidem.Options) {
		o.Namespace, o.Observer = "shop", lambdaidem.Discard
	})
	_, _ = d.do(t, d.guard, "k", uncertain)
	if d.inspect(t, d.id("k")).Encrypted {
		t.Error("the record of functions that don't encrypt says that they do")
	}
	_, _ = d.do(t, encrypting, "k", uncertain)
	if inspected := d.inspect(t, d.id("k")); !inspected.Encrypted || inspected.Record.Attempt != 2 {
		t.Errorf("after a takeover by functions that encrypt it is %+v", inspected)
	}
	if _, err := d.operator(t, "alice", func(o *OperatorOptions) { o.Force = true }).Release(t.Context(), d.inspect(t, d.id("k"))); err != nil {
		t.Fatal(err)
	}
	_, _ = d.do(t, d.guard, "k", uncertain)
	if inspected := d.inspect(t, d.id("k")); inspected.Encrypted || inspected.Record.Attempt != 3 {
		t.Errorf("after a takeover by functions that don't, it is %+v", inspected)
	}
}

// A record has an operator's answer only if its latest operation settled it.
func TestG3_WhatIsAnOperatorsAnswer(t *testing.T) {
	did := func(what OperationKind) []Operation {
		return []Operation{{What: OperationReleased, Token: "mine"}, {What: what, Token: "mine"}}
	}
	for name, c := range map[string]struct {
		state lambdaidem.State
		token string
		did   []Operation
		want  bool
	}{
		"settled":                      {lambdaidem.Completed, "mine", did(OperationSettled), true},
		"erased since":                 {lambdaidem.Completed, "mine", did(OperationErased), false},
		"completed by another attempt": {lambdaidem.Completed, "other", did(OperationSettled), false},
		"released":                     {lambdaidem.Released, "mine", did(OperationSettled), false},
		"no operations":                {lambdaidem.Completed, "mine", nil, false},
	} {
		if got := isSettled(c.state, c.token, c.did); got != c.want {
			t.Errorf("%s: %v; want %v", name, got, c.want)
		}
	}
}

// An operator settles a record again, with an answer in parts, while a purge runs.
func TestO2_APurgeLeavesThePartsThatAnOperatorIsWriting(t *testing.T) {
	d := openDesk(t)
	d.die(t, "k")
	first, err := d.operator(t, "alice").Settle(t.Context(), d.inspect(t, d.id("k")), settled)
	if err != nil {
		t.Fatal(err)
	}
	var during PurgeProgress
	client, w := over(d.client)
	w.after(opUpdateItem, func(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
		during = d.purge(t, d.operator(t, "bob"), func(p *PurgeOptions) {
			p.Match = func(rec lambdaidem.Record) bool { // selects parts, but not the record itself
				return rec.State == lambdaidem.Absent && rec.Scope == first.Record.Scope
			}
		})
		return pass(r, next)
	})
	o, err := New(client, d.table, patient).Operator("alice", "ticket", again)
	if err != nil {
		t.Fatal(err)
	}
	text := noise(500_000)
	large := lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, Value: []byte(`"` + base64.StdEncoding.EncodeToString([]byte(text)) + `"`)}
	if _, err := o.Settle(t.Context(), first, large); err != nil {
		t.Fatal(err)
	}
	if during.KeptParts != 2 || during.Parts != 0 {
		t.Errorf("the purge says %+v; want 2 parts kept", during)
	}
	got, err := d.do(t, d.guard, "k", answerOf("ran again"))
	if got != base64.StdEncoding.EncodeToString([]byte(text)) || err != nil {
		t.Errorf("a retry got %d bytes, %v", len(got), err)
	}
}

// After an operator has settled a record, the parts of the dead attempt stay for an hour, and no
// longer.
func TestO2_PurgeDeletesOldPartsOfASettledRecord(t *testing.T) {
	d := openDesk(t)
	d.clock = time.Now().Add(-2 * time.Hour)
	left := d.leaveParts(t, func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold })
	if _, err := d.operator(t, "alice").Settle(t.Context(), d.inspect(t, d.id("k")), settled); err != nil {
		t.Fatal(err)
	}
	if sum := d.purge(t, d.operator(t, "alice")); sum.Orphans != left || sum.KeptParts != 0 {
		t.Errorf("it says %+v; want %d orphans", sum, left)
	}
}

// An operator inspects a record, a purge erases its answer, and then the operator settles it again.
func TestO2_WhatAPurgeErasedIsNotSettledAgain(t *testing.T) {
	for _, forget := range []bool{false, true} {
		d := openDesk(t)
		d.die(t, "k")
		inspected, err := d.operator(t, "alice").Settle(t.Context(), d.inspect(t, d.id("k")), settled)
		if err != nil {
			t.Fatal(err)
		}
		d.purge(t, d.operator(t, "bob"), func(p *PurgeOptions) { p.Forget = forget })
		erased := d.inspect(t, d.id("k"))
		now, err := d.operator(t, "alice", again).Settle(t.Context(), inspected, corrected)
		if !errors.Is(err, ErrRecordChanged) {
			t.Errorf("forget=%v: settling again got %v; want ErrRecordChanged", forget, err)
		}
		if diff := cmp.Diff(erased.Operations, now.Operations); diff != "" {
			t.Errorf("forget=%v: the record's operations changed: -before +after\n%s", forget, diff)
		}
	}
}

// An operator ends a record without an answer, because nobody knows whether the operation was carried
// out. A purge has nothing to erase there. It must not claim that there was an answer, and the operator
// can still settle the record again. Encryption makes no difference.
func TestO2_APurgeLeavesARecordThatAnOperatorEndedWithoutAnAnswer(t *testing.T) {
	for name, option := range map[string]func(*Options){
		"plain":     func(*Options) {},
		"in parts":  func(o *Options) { o.MaxInline = 1 },
		"encrypted": encrypted("k1"),
		"only":      func(o *Options) { encrypted("k1")(o); o.Encryption.Only = true },
	} {
		t.Run(name, func(t *testing.T) {
			d := openShifted(t)
			s := New(d.client, d.table, option)
			g := d.guard(s, func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold })
			_, _ = d.pay(t, g, func(context.Context) (string, error) { return "", errLater })
			d.offset += 5 * time.Minute
			operator, err := s.Operator("alice", "TICKET-3", again)
			if err != nil {
				t.Fatal(err)
			}
			none := lambdaidem.Result{Outcome: lambdaidem.OutcomeFailed, Failure: lambdaidem.NoAnswer("nobody knows")}
			if _, err := operator.Settle(t.Context(), d.inspect(t), none); err != nil {
				t.Fatal(err)
			}
			refusal := func() string {
				t.Helper()
				_, err := d.pay(t, g, func(context.Context) (string, error) { return "ran again", nil })
				if !errors.Is(err, lambdaidem.ErrAnswerUnavailable) {
					t.Fatalf("a retry gets %v", err)
				}
				return err.Error()
			}
			before := refusal()
			for sum, err := range operator.Purge(t.Context()) {
				if err != nil || sum.Purged != 0 || sum.Before != 1 {
					t.Errorf("the purge says %+v, %v", sum, err)
				}
			}
			if after := refusal(); after != before {
				t.Errorf("a retry got %q before the purge, and %q after it", before, after)
			}
			if _, err := operator.Settle(t.Context(), d.inspect(t), corrected); err != nil {
				t.Errorf("settling it again: %v", err)
			}
		})
	}
}
