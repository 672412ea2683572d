package lambdaidem_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// deploy contains the options and the body of one attempt.
type deploy struct {
	with []func(*lambdaidem.Options)
	body string
}

// mustRun sends a request and checks that its handler runs, whatever the result.
func (r *rig) mustRun(t *testing.T, in request) {
	t.Helper()
	before := r.runs.Load()
	if out, err := r.handler(t.Context(), in); r.runs.Load() == before {
		t.Fatalf("%s did not run: %+v, %v", in.Body, out, err)
	}
}

// ranAsOne sends one request after another under one key. Each attempt that runs is released.
// ranAsOne returns which requests ran, and checks that all of these had the same downstream key.
func ranAsOne(t *testing.T, deploys []deploy, optFns ...func(*lambdaidem.Options)) []bool {
	t.Helper()
	r := newRig(nil, optFns...)
	var first string
	var all []bool
	for _, d := range deploys {
		ran := false
		next := r.later(func(ctx context.Context, _ request) (response, error) {
			ran = true
			if key := lambdaidem.DownstreamKey(ctx, "charge"); first == "" {
				first = key
			} else if key != first {
				t.Errorf("the downstream key is %s, and was %s", key, first)
			}
			return response{}, lambdaidem.Retryable(errWire)
		}, d.with...)
		out, err := next.handler(t.Context(), post("key-1", d.body))
		if !ran {
			if err != nil {
				t.Fatal(err)
			}
			wantProblem(t, out, http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
		}
		if got := r.record(t).DownstreamKey("charge"); got != first {
			t.Errorf("the record says %s, its handler had %s", got, first)
		}
		all = append(all, ran)
	}
	return all
}

const (
	paid100 = `{"amount":100,"t":1}`
	paid101 = `{"amount":101,"t":1}`
	paid102 = `{"amount":102,"t":1}`
)

func TestE6_ADownstreamKeyOutlivesADeployment(t *testing.T) {
	none := opts()
	const yes, no = true, false
	for _, c := range []struct {
		name    string
		deploys []deploy
		want    []bool
	}{
		{"nothing changes", []deploy{{none, paid100}, {none, paid100}}, []bool{yes, yes}},
		{"a secret is rotated", []deploy{
			{opts(secrets(oldSecret)), paid100}, {opts(secrets(oldSecret, newSecret)), paid100},
			{opts(secrets(newSecret, oldSecret)), paid100}, {opts(secrets(newSecret)), paid100},
		}, []bool{yes, yes, yes, yes}},
		{"a secret is replaced", []deploy{{opts(secrets(oldSecret)), paid100}, {opts(secrets(newSecret)), paid100}}, []bool{yes, yes}},
		{"the first secret", []deploy{{none, paid100}, {opts(secrets(newSecret), unsignedToo), paid100}, {opts(secrets(newSecret)), paid100}}, []bool{yes, yes, yes}},
		{"the first secret, without a step between", []deploy{{none, paid100}, {opts(secrets(newSecret)), paid100}}, []bool{yes, yes}},
		{"a pointer is added", []deploy{{none, paid100}, {opts(ignoring("/t")), paid100}, {opts(ignoring("/t")), paid100}}, []bool{yes, yes, yes}},
		{"a header is added", []deploy{{none, paid100}, {opts(counting("content-type")), paid100}}, []bool{yes, yes}},
		{"a bound changes", []deploy{{none, paid100}, {opts(func(o *lambdaidem.Options) { o.MaxBody = 10000 }), paid100}}, []bool{yes, yes}},
		{"less counts by value", []deploy{{none, paid100}, {opts(func(o *lambdaidem.Options) { o.MaxJSONDepth = 1 }), `{"t":1,"amount":100}`}}, []bool{yes, yes}},
		{"the payload is corrected", []deploy{{none, paid100}, {none, paid101}, {none, paid101}}, []bool{yes, no, no}},
		{"and corrected back", []deploy{{none, paid100}, {none, paid101}, {none, paid100}, {none, paid102}, {none, paid101}, {none, paid100}}, []bool{yes, no, yes, no, no, yes}},
		{"corrected, then rotated", []deploy{
			{opts(secrets(oldSecret)), paid100}, {opts(secrets(oldSecret)), paid101}, {opts(secrets(newSecret, oldSecret)), paid101},
			{opts(secrets(newSecret, oldSecret)), paid100},
		}, []bool{yes, no, no, yes}},
		{"corrected while a secret is rotated", []deploy{{opts(secrets(oldSecret)), paid100}, {opts(secrets(newSecret, oldSecret)), paid101}}, []bool{yes, no}},
		{"corrected, and nobody can know", []deploy{{opts(secrets(oldSecret)), paid100}, {opts(secrets(newSecret)), paid101}}, []bool{yes, yes}},
		{"what was in doubt once stays so", []deploy{
			{opts(secrets(oldSecret)), paid100}, {opts(secrets(newSecret)), paid101}, {opts(secrets(newSecret)), paid100}, {opts(secrets(newSecret)), paid102},
		}, []bool{yes, yes, yes, yes}},
		{"the first payload, after one that was in doubt twice", []deploy{
			{none, paid100}, {opts(ignoring("/memo")), paid101}, {opts(ignoring("/memo")), paid101}, {opts(ignoring("/memo")), paid100},
		}, []bool{yes, yes, yes, yes}},
		{"corrected after a deployment that changes nothing for the payload", []deploy{
			{none, paid100}, {opts(ignoring("/memo")), paid100}, {opts(ignoring("/memo")), paid101}, {opts(ignoring("/memo")), paid100},
		}, []bool{yes, yes, no, yes}},
		{"corrected after a bound changed", []deploy{
			{none, paid100}, {opts(func(o *lambdaidem.Options) { o.MaxBody = 10000 }), paid100}, {opts(func(o *lambdaidem.Options) { o.MaxBody = 10000 }), paid101},
		}, []bool{yes, yes, no}},
		{"several secrets are replaced by several", []deploy{{opts(secrets("a third secret 16")), paid100}, {opts(secrets(newSecret, oldSecret)), paid101}}, []bool{yes, yes}},
		{"ignored parts", []deploy{{opts(ignoring("/t")), paid100}, {opts(ignoring("/t")), `{"t":2,"amount":100}`}, {opts(ignoring("/t")), paid101}}, []bool{yes, yes, no}},
		{"pointers in another order", []deploy{{opts(ignoring("/t", "/u")), paid100}, {opts(ignoring("/u", "/t", "/t")), paid101}}, []bool{yes, no}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ranAsOne(t, c.deploys); !slices.Equal(got, c.want) {
				t.Errorf("these ran: %v, want %v", got, c.want)
			}
			if got := ranAsOne(t, c.deploys, func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold }); !slices.Equal(got, c.want) {
				t.Errorf("under Hold these ran: %v, want %v", got, c.want)
			}
		})
	}
}

// A record whose handler used no downstream key loses its payload when it is released. A corrected
// payload then has the downstream key that every payload would have had.
func TestF5_AReleasedRecordForgetsItsPayload(t *testing.T) {
	for name, changed := range map[string][]func(*lambdaidem.Options){"the same settings": nil, "another secret": {secrets(newSecret)}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(func(context.Context, request) (response, error) { return response{}, lambdaidem.Retryable(errWire) })
			r.mustRun(t, post("key-1", paid100))
			var key string
			next := r.later(func(ctx context.Context, _ request) (response, error) {
				key = lambdaidem.DownstreamKey(ctx, "charge")
				return response{}, errWire
			}, changed...)
			next.mustRun(t, post("key-1", paid101))
			if want := (lambdaidem.Record{ID: r.record(t).ID}).DownstreamKey("charge"); key != want {
				t.Errorf("the downstream key is %s, want %s", key, want)
			}
			wantProblem(t, next.send(t, post("key-1", paid100)), http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
			next.mustRun(t, post("key-1", paid101))
		})
	}
}

// A dead attempt may have had an effect. A later attempt that is released doesn't know about it, so
// the record keeps its payload.
func TestF5_ARecordKeepsThePayloadOfAnAttemptThatDied(t *testing.T) {
	for name, second := range map[string]error{"released by its handler": errWire, "sure that nothing happened": lambdaidem.Retryable(errWire)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(func(context.Context, request) (response, error) { return response{}, lambdaidem.Uncertain(errWire) })
				r.mustRun(t, post("key-1", paid100))
				time.Sleep(leaseWithoutDeadline)
				next := r.later(func(context.Context, request) (response, error) { return response{}, second })
				next.mustRun(t, post("key-1", paid100))
				for range 2 {
					wantProblem(t, next.send(t, post("key-1", paid101)), http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
					next.mustRun(t, post("key-1", paid100))
				}
			})
		})
	}
}

// A call that fails open has the same downstream key as the attempts that read the record.
func TestE6_ACallThatFailsOpenHasTheRecordsKey(t *testing.T) {
	var keys []string
	h := func(ctx context.Context, _ request) (response, error) {
		keys = append(keys, lambdaidem.DownstreamKey(ctx, "charge"))
		return response{}, lambdaidem.Retryable(errWire)
	}
	r := newRig(h, failOpen, secrets(oldSecret))
	send := func(r *rig, body string) {
		t.Helper()
		r.mustRun(t, post("key-1", body))
	}
	unreachable := refused(lambdaidem.ReasonUnreachable)
	send(r, paid100)
	r.store.fail(acquire, unreachable)
	send(r.later(h, secrets(newSecret)), paid100)
	r.store.fail(acquire, nil, unreachable) // the record is read, and then the store can't be reached
	send(r, paid100)
	if len(keys) != 3 || keys[0] != keys[1] || keys[1] != keys[2] {
		t.Errorf("the downstream keys are %q", keys)
	}
}

// A rotation ends when the old secret is removed. However the previous attempt ended, an attempt
// with the new secret signs the record again.
func TestF4_ATakeoverSignsAnew(t *testing.T) {
	reserve := func(ctx context.Context) error {
		_, err := lambdaidem.Step(ctx, "reserve", func(context.Context) (int, error) { return 1, nil })
		return err
	}
	for name, how := range map[string]handler{
		"in progress": func(context.Context, request) (response, error) { return response{}, lambdaidem.Uncertain(errWire) },
		"released, with steps": func(ctx context.Context, _ request) (response, error) {
			return response{}, lambdaidem.Retryable(errors.Join(errWire, reserve(ctx)))
		},
		"released": func(context.Context, request) (response, error) { return response{}, lambdaidem.Retryable(errWire) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fail := func(r *rig) {
					t.Helper()
					r.mustRun(t, first())
					time.Sleep(leaseWithoutDeadline)
				}
				r := newRig(how, secrets(oldSecret))
				fail(r)
				fail(r.later(how, secrets(newSecret, oldSecret)))
				last := r.later(nil, secrets(newSecret))
				if out := last.send(t, first()); out.StatusCode != http.StatusCreated || replayed(out) {
					t.Errorf("without the old secret the retry gets %+v", out)
				}
				wantProblem(t, last.send(t, post("key-1", paid101)), http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
			})
		})
	}
}

// The first secret is introduced step by step. At no time do two instances that run together refuse
// each other's records.
func TestF4_TheFirstSecretIsIntroducedByASecretThatOnlyMatches(t *testing.T) {
	before, matching := opts(), opts(secrets(string(lambdaidem.Unsigned()), newSecret))
	signing, after := opts(secrets(newSecret), unsignedToo), opts(secrets(newSecret))
	for _, c := range []struct {
		name     string
		one, two []func(*lambdaidem.Options)
	}{{"the first deployment", before, matching}, {"the second", matching, signing}} {
		for _, pair := range [][2][]func(*lambdaidem.Options){{c.one, c.two}, {c.two, c.one}} {
			was := newRig(nil, pair[0]...)
			answer := was.send(t, first())
			is := was.beside(pair[1]...)
			wantReplay(t, is.send(t, first()), answer)
			wantProblem(t, is.send(t, post("key-1", paid101)), http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
		}
	}
	was := newRig(nil, signing...)
	answer := was.send(t, first())
	wantReplay(t, was.beside(after...).send(t, first()), answer)

	r := newRig(nil, matching...)
	r.send(t, first())
	if f, plain := r.record(t).Fingerprint, newRig(nil, before...); true {
		plain.send(t, first())
		if want := plain.record(t).Fingerprint; f != want {
			t.Errorf("a secret that only matches leaves %s, want %s", f, want)
		}
	}
}
