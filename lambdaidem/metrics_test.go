package lambdaidem_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// The tests in this file cover what a metrics observer needs (O1): the time spent in the store, a
// name with few different values, and a way to combine observers.

// The time of every store operation counts as time in the store, except that of steps, which counts
// as the handler's.
func TestO1_TimeInTheStore(t *testing.T) {
	slowly := after(func() { time.Sleep(time.Second) })
	everySlow := func(r *rig, verbs ...string) {
		for _, verb := range verbs {
			r.store.failAlways(verb, slowly)
		}
	}
	all := []string{acquire, complete, release, get, save, load}
	for name, c := range map[string]struct {
		do   func(*testing.T) *rig
		kind lambdaidem.Kind
		want time.Duration
	}{
		"acquire and complete": {func(t *testing.T) *rig {
			r := newRig(nil)
			everySlow(r, all...)
			r.send(t, first())
			return r
		}, lambdaidem.EventNew, 2 * time.Second},
		"acquire and release": {func(t *testing.T) *rig {
			r := newRig(status(500))
			everySlow(r, all...)
			r.send(t, first())
			return r
		}, lambdaidem.EventReleased, 2 * time.Second},
		"a replay": {func(t *testing.T) *rig {
			r := newApartRig(true, nil)
			r.send(t, first())
			everySlow(r, all...)
			r.send(t, first())
			return r
		}, lambdaidem.EventReplayed, 2 * time.Second}, // a claim and a load
		"a wait": {func(t *testing.T) *rig {
			r := newRig(slow(3*time.Second, 201), func(o *lambdaidem.Options) { o.Wait = time.Minute })
			r.store.failAlways(get, slowly)
			done := meanwhile(t, r.handler)
			r.send(t, first())
			<-done
			return r
		}, lambdaidem.EventReplayed, 4 * time.Second}, // four reads, with a pause before each; the last one gets the answer
		"steps": {func(t *testing.T) *rig {
			r := newRig(func(ctx context.Context, _ request) (response, error) {
				_, err := lambdaidem.Step(ctx, "one", func(context.Context) (int, error) { return 1, nil })
				return response{StatusCode: 201}, err
			})
			everySlow(r, save)
			r.send(t, first())
			return r
		}, lambdaidem.EventNew, 0},
		"a step that lost the lease": {func(t *testing.T) *rig {
			r := newRig(func(ctx context.Context, _ request) (response, error) {
				_, err := lambdaidem.Step(ctx, "one", func(context.Context) (int, error) { return 1, nil })
				return response{StatusCode: 201}, err
			})
			r.store.failAlways(save, func(context.Context, string, func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
				return lambdaidem.Record{}, lambdaidem.ErrLeaseLost
			})
			everySlow(r, get)
			r.send(t, first())
			return r
		}, lambdaidem.EventLeaseLost, time.Second},
		"a transaction": {func(t *testing.T) *rig {
			r, l := withLedger(enlisting(created), optimistic)
			l.failAlways(commit, slowly)
			r.send(t, first())
			return r
		}, lambdaidem.EventNew, time.Second},
		"an optimistic attempt without effect": {func(t *testing.T) *rig {
			r, l := withLedger(status(500), optimistic)
			l.failAlways(get, slowly)
			r.send(t, first())
			return r
		}, lambdaidem.EventReleased, time.Second},
		"a transaction of an unguarded run": {func(t *testing.T) *rig {
			r, l := withLedger(enlisting(created), func(o *lambdaidem.Options) { o.Methods = []string{"PUT"} })
			l.failAlways(commit, func(context.Context, string, func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
				time.Sleep(time.Second)
				return lambdaidem.Record{}, &lambdaidem.StoreError{Op: commit, Reason: lambdaidem.ReasonNoTable, NotApplied: true, Err: errWire}
			})
			r.send(t, first())
			return r
		}, lambdaidem.EventStoreError, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := c.do(t)
				i := slices.IndexFunc(r.seen.all(), func(e lambdaidem.Event) bool { return e.Kind == c.kind })
				if i < 0 {
					t.Fatalf("the observer saw %v", r.seen.kinds())
				}
				if e := r.seen.all()[i]; e.Store != c.want {
					t.Errorf("the store took %v, want %v", e.Store, c.want)
				}
			})
		})
	}
}

// A template never contains what a client or a sender chose, so there are no more templates than
// routes.
func TestO1_TemplatesAreFew(t *testing.T) {
	seen := &recorder{}
	store := memstore.New()
	g := lambdaidem.New(store, anonymous, func(o *lambdaidem.Options) { o.Namespace, o.Observer = "test", seen })
	asked := func(pattern, url string) func(*testing.T) {
		return func(t *testing.T) {
			mux := http.NewServeMux()
			mux.Handle(pattern, g.Middleware(says("x")))
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, url, http.NoBody)
			r.Header.Set("Idempotency-Key", "k"+url)
			mux.ServeHTTP(httptest.NewRecorder(), r)
		}
	}
	v2 := func(route string) func(*testing.T) {
		return func(t *testing.T) {
			in := post("k"+route, "")
			in.RouteKey, in.RawPath = route, "/secret/1"
			if _, err := g.APIGatewayV2(status(201))(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
	}
	bus := func(fns ...func(*lambdaidem.BatchOptions[events.EventBridgeEvent])) func(*testing.T) {
		return func(t *testing.T) {
			h := g.EventBridge(func(context.Context, events.EventBridgeEvent) error { return nil }, fns...)
			if err := h(t.Context(), events.EventBridgeEvent{ID: "1", Source: "secret", DetailType: "secret", Detail: []byte("{}")}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		do   func(*testing.T)
		want string
	}{
		"a template":                 {v2("POST /payments/{id}"), "POST /payments/{id}"},
		"no template":                {v2("$default"), ""},
		"a greedy one":               {v2("POST /{proxy+}"), ""},
		"a pattern of net/http":      {asked("POST /a/{id}", "http://secret.example.com/a/1"), "POST /a/{id}"},
		"a subtree of net/http":      {asked("POST /a/", "http://secret.example.com/a/1"), ""},
		"a pattern with a host":      {asked("POST known.example.com/a/{id}", "http://known.example.com/a/2"), "POST /a/{id}"},
		"a pattern with white space": {asked("POST /a b", "http://secret.example.com/a%20b"), "POST /a%20b"},
		"an operation": {func(t *testing.T) {
			if _, err := lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "charge it", Key: "k"}, func(context.Context) (int, error) { return 1, nil }); err != nil {
				t.Fatal(err)
			}
		}, "charge%20it"},
		"a queue": {func(t *testing.T) {
			if _, err := g.SQS(func(context.Context, events.SQSMessage) error { return nil })(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: "1", EventSourceARN: "arn:q"}}}); err != nil {
				t.Fatal(err)
			}
		}, "arn:q"},
		"a bus":                         {bus(), ""},
		"a bus, its handler has a name": {bus(func(o *lambdaidem.BatchOptions[events.EventBridgeEvent]) { o.Operation = "receipts" }), "receipts"},
	} {
		t.Run(name, func(t *testing.T) {
			seen.forget()
			c.do(t)
			if e := seen.last(t); e.Kind != lambdaidem.EventNew || e.Template != c.want || strings.Contains(e.Template, "secret") {
				t.Errorf("%s has the template %q, want %q", e.Kind, e.Template, c.want)
			}
		})
	}
}

// Each of several observers gets every event, in the given order.
func TestO1_Observers(t *testing.T) {
	var order []string
	says := func(name string) lambdaidem.Observer {
		return lambdaidem.ObserverFunc(func(_ context.Context, e lambdaidem.Event) { order = append(order, name+" "+string(e.Kind)) })
	}
	lambdaidem.Observers(says("a"), nil, lambdaidem.Discard, says("b")).Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.EventNew})
	if want := []string{"a new", "b new"}; !slices.Equal(order, want) {
		t.Errorf("they were told %v, want %v", order, want)
	}
	if o := lambdaidem.Observers(nil, lambdaidem.Discard); o != lambdaidem.Discard {
		t.Errorf("none of them is %T", o)
	}
	one := &recorder{}
	if o := lambdaidem.Observers(lambdaidem.Discard, one); o != lambdaidem.Observer(one) {
		t.Errorf("one of them is %T", o)
	}
	several := []lambdaidem.Observer{says("a"), says("b")}
	o := lambdaidem.Observers(several...)
	several[0], order = nil, nil // the slice belongs to the caller
	if o.Observe(t.Context(), lambdaidem.Event{}); len(order) != 2 {
		t.Errorf("they were told %v", order)
	}
}

// An observer can be added to the default one, and the default one's warnings continue.
func TestO1_AnObserverBesideTheDefault(t *testing.T) {
	var buf bytes.Buffer
	was := slog.Default()
	defer slog.SetDefault(was)
	slog.SetDefault(slog.New(slog.NewTextHandler(&buf, nil)))
	seen := &recorder{}
	r := newRig(nil)
	r.guard = lambdaidem.New(r.store, func(o *lambdaidem.Options) { o.Observer = lambdaidem.Observers(o.Observer, seen) })
	r.handler = r.guarded(nil)
	r.send(t, first())
	if got := seen.kinds(); !slices.Equal(got, []lambdaidem.Kind{lambdaidem.EventNew}) || buf.Len() > 0 {
		t.Errorf("it saw %v, and the log has %s", got, buf.String())
	}
	r.store.failAlways(acquire, refused(lambdaidem.ReasonNoTable))
	r.send(t, first())
	if e := seen.last(t); e.Kind != lambdaidem.EventStoreError || !strings.Contains(buf.String(), "no_table") {
		t.Errorf("it saw %v, and the log has %s", e, buf.String())
	}
}

// An event that every observer ignores isn't created.
func TestObservers_NobodyListens(t *testing.T) {
	for _, c := range []struct {
		name string
		o    []lambdaidem.Observer
		kind lambdaidem.Kind
		want bool
	}{
		{"warnings and nobody", []lambdaidem.Observer{lambdaidem.Warnings, lambdaidem.Discard}, lambdaidem.EventNew, true},
		{"a warning", []lambdaidem.Observer{lambdaidem.Warnings, lambdaidem.Warnings}, lambdaidem.EventUncertain, false},
		{"no warning, twice", []lambdaidem.Observer{lambdaidem.Warnings, lambdaidem.Warnings}, lambdaidem.EventNew, true},
		{"somebody", []lambdaidem.Observer{lambdaidem.Warnings, &recorder{}}, lambdaidem.EventNew, false},
	} {
		if got := lambdaidem.Ignores(lambdaidem.Observers(c.o...), c.kind, nil); got != c.want {
			t.Errorf("%s: ignored is %v", c.name, got)
		}
	}
}
