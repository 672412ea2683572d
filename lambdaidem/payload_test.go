package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// deploy is what one attempt runs with.
type deploy struct {
	with []func(*lambdaidem.Options)
	body string
}

// mustRun sends a request whose handler must run, however that ends.
func (r *rig) mustRun(t *testing.T, in request) {
	t.Helper()
	before := r.runs.Load()
	if out, err := r.handler(t.Context(), in); r.runs.Load() == before {
		t.Fatalf("%s did not run: %+v, %v", in.Body, out, err)
	}
}

// keysOf lets one request after another meet an attempt that is released, and
// returns which downstream key each one had: 0 for the first key that was seen, 1
// for the second.
func keysOf(t *testing.T, deploys []deploy, optFns ...func(*lambdaidem.Options)) []int {
	t.Helper()
	r := newRig(nil, optFns...)
	var keys []string
	var which []int
	for _, d := range deploys {
		next := r.later(func(ctx context.Context, _ request) (response, error) {
			key := lambdaidem.DownstreamKey(ctx, "charge")
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
			which = append(which, slices.Index(keys, key))
			return response{}, lambdaidem.Retryable(errWire)
		}, d.with...)
		next.mustRun(t, post("key-1", d.body))
		if got, last := r.record(t).DownstreamKey("charge"), keys[which[len(which)-1]]; got != last {
			t.Errorf("the record says %s, its handler had %s", got, last)
		}
	}
	return which
}

const (
	paid100 = `{"amount":100,"t":1}`
	paid101 = `{"amount":101,"t":1}`
	paid102 = `{"amount":102,"t":1}`
)

func TestE6_ADownstreamKeyOutlivesADeployment(t *testing.T) {
	none := opts()
	for _, c := range []struct {
		name    string
		deploys []deploy
		want    []int
	}{
		{"nothing changes", []deploy{{none, paid100}, {none, paid100}}, []int{0, 0}},
		{"a secret is rotated", []deploy{
			{opts(secrets(oldSecret)), paid100}, {opts(secrets(oldSecret, newSecret)), paid100},
			{opts(secrets(newSecret, oldSecret)), paid100}, {opts(secrets(newSecret)), paid100},
		}, []int{0, 0, 0, 0}},
		{"a secret is replaced", []deploy{{opts(secrets(oldSecret)), paid100}, {opts(secrets(newSecret)), paid100}}, []int{0, 0}},
		{"the first secret", []deploy{{none, paid100}, {opts(secrets(newSecret), unsignedToo), paid100}, {opts(secrets(newSecret)), paid100}}, []int{0, 0, 0}},
		{"the first secret, without a step between", []deploy{{none, paid100}, {opts(secrets(newSecret)), paid100}}, []int{0, 0}},
		{"a pointer is added", []deploy{{none, paid100}, {opts(ignoring("/t")), paid100}, {opts(ignoring("/t")), paid100}}, []int{0, 0, 0}},
		{"a header is added", []deploy{{none, paid100}, {opts(counting("content-type")), paid100}}, []int{0, 0}},
		{"a bound changes", []deploy{{none, paid100}, {opts(func(o *lambdaidem.Options) { o.MaxBody = 10000 }), paid100}}, []int{0, 0}},
		{"less counts by value", []deploy{{none, paid100}, {opts(func(o *lambdaidem.Options) { o.MaxJSONDepth = 1 }), `{"t":1,"amount":100}`}}, []int{0, 0}},
		{"the payload is corrected", []deploy{{none, paid100}, {none, paid101}, {none, paid101}}, []int{0, 1, 1}},
		{"and corrected back", []deploy{{none, paid100}, {none, paid101}, {none, paid100}, {none, paid102}, {none, paid101}, {none, paid100}}, []int{0, 1, 0, 2, 1, 0}},
		{"corrected, then rotated", []deploy{
			{opts(secrets(oldSecret)), paid100}, {opts(secrets(oldSecret)), paid101}, {opts(secrets(newSecret, oldSecret)), paid101},
			{opts(secrets(newSecret, oldSecret)), paid100},
		}, []int{0, 1, 1, 0}},
		{"corrected while a secret is rotated", []deploy{{opts(secrets(oldSecret)), paid100}, {opts(secrets(newSecret, oldSecret)), paid101}}, []int{0, 1}},
		{"corrected, and nobody can know", []deploy{{opts(secrets(oldSecret)), paid100}, {opts(secrets(newSecret)), paid101}}, []int{0, 0}},
		{"what was in doubt once stays so", []deploy{
			{opts(secrets(oldSecret)), paid100}, {opts(secrets(newSecret)), paid101}, {opts(secrets(newSecret)), paid100}, {opts(secrets(newSecret)), paid102},
		}, []int{0, 0, 0, 0}},
		{"a payload that fits under other settings is no measure", []deploy{
			{opts(ignoring("/t")), `{"amount":100}`}, {none, `{"amount":100}`}, {none, paid100},
		}, []int{0, 0, 0}},
		{"several secrets are replaced by several", []deploy{{opts(secrets("a third secret 16")), paid100}, {opts(secrets(newSecret, oldSecret)), paid101}}, []int{0, 0}},
		{"of several payloads in doubt, the current one", []deploy{
			{opts(secrets(oldSecret)), paid100}, {opts(secrets(oldSecret)), paid101}, {opts(secrets(oldSecret)), paid100}, {opts(secrets(newSecret)), paid102},
		}, []int{0, 1, 0, 0}},
		{"of several payloads in doubt, the latest", []deploy{
			{opts(secrets(oldSecret)), paid100}, {opts(secrets(oldSecret)), paid101}, {opts(secrets(newSecret, oldSecret)), paid102},
			{opts(secrets(newSecret)), `{"amount":103,"t":1}`},
		}, []int{0, 1, 2, 1}},
		{"ignored parts", []deploy{{opts(ignoring("/t")), paid100}, {opts(ignoring("/t")), `{"t":2,"amount":100}`}, {opts(ignoring("/t")), paid101}}, []int{0, 0, 1}},
		{"pointers in another order", []deploy{{opts(ignoring("/t", "/u")), paid100}, {opts(ignoring("/u", "/t", "/t")), paid101}}, []int{0, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := keysOf(t, c.deploys); !slices.Equal(got, c.want) {
				t.Errorf("the downstream keys are %v, want %v", got, c.want)
			}
			if got := keysOf(t, c.deploys, func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold }); !slices.Equal(got, c.want) {
				t.Errorf("under Hold the downstream keys are %v, want %v", got, c.want)
			}
		})
	}
}

// A record tells only so many payloads apart.
func TestE6_TheNumberOfPayloadsIsBounded(t *testing.T) {
	var deploys []deploy
	for i := range 20 {
		deploys = append(deploys, deploy{nil, fmt.Sprintf(`{"amount":%d}`, i)})
	}
	got := keysOf(t, append(deploys, deploys[0], deploys[7], deploys[19]))
	want := []int{0, 1, 2, 3, 4, 5, 6, 7} // the eighth stands for all that follow
	for range 12 {
		want = append(want, 7)
	}
	if want = append(want, 0, 7, 7); !slices.Equal(got, want) {
		t.Errorf("the downstream keys are %v, want %v", got, want)
	}
}

// A call that fails open has the key of the attempts that read the record; once it
// has seen the record, also that of a corrected payload.
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
	send(r, paid101)
	r.store.fail(acquire, nil, unreachable) // the record is seen, and then out of reach
	send(r, paid101)
	if len(keys) != 4 || keys[0] != keys[1] || keys[1] == keys[2] || keys[2] != keys[3] {
		t.Errorf("the downstream keys are %q", keys)
	}
}

// A rotation ends when the old secret is removed: an attempt under the new one has
// signed the record anew, wherever the one before it ended.
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

// The first secret, introduced by steps: at no time do two instances that serve
// together refuse each other's records.
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
