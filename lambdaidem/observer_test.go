package lambdaidem_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Each outcome gives one event, with its durations and attempt number. The details of an outcome's
// events are tested with the rule that creates them. This test lists all outcomes and the fields
// that are set.
func TestO1_EventsOfEachOutcome(t *testing.T) {
	fails := func(verb string, f fault) func(*testing.T, *rig) {
		return func(t *testing.T, r *rig) {
			r.store.failAlways(verb, f)
			r.send(t, first())
		}
	}
	for kind, c := range map[lambdaidem.Kind]struct {
		h    handler
		opt  func(*lambdaidem.Options)
		do   func(*testing.T, *rig)
		want lambdaidem.Event // besides Kind: Attempt, and whether Scope, Key and Handler are set
	}{
		lambdaidem.EventNew:        {want: lambdaidem.Event{Scope: "+", Key: "+", Attempt: 1, Handler: 1}},
		lambdaidem.EventReplayed:   {do: func(t *testing.T, r *rig) { r.send(t, first()); r.send(t, first()) }, want: lambdaidem.Event{Scope: "+", Key: "+", Attempt: 1}},
		lambdaidem.EventMismatch:   {do: func(t *testing.T, r *rig) { r.send(t, first()); r.send(t, post("key-1", "{}")) }, want: lambdaidem.Event{Scope: "+", Key: "+", Attempt: 1}},
		lambdaidem.EventInProgress: {do: fails(acquire, refused(lambdaidem.ReasonConflict)), want: lambdaidem.Event{Scope: "+", Key: "+"}},
		lambdaidem.EventKeyMissing: {do: func(t *testing.T, r *rig) { r.send(t, post("", "")) }, want: lambdaidem.Event{Scope: "+"}},
		lambdaidem.EventKeyInvalid: {do: func(t *testing.T, r *rig) { r.send(t, keyed(`"`)) }, want: lambdaidem.Event{Scope: "+"}},
		lambdaidem.EventBypassed:   {opt: func(o *lambdaidem.Options) { o.Methods = []string{"PUT"} }},
		lambdaidem.EventReleased:   {h: slow(time.Second, 500), want: lambdaidem.Event{Scope: "+", Key: "+", Attempt: 1, Handler: 1}},
		lambdaidem.EventUncertain:  {h: slow(time.Second, 500), opt: hold, want: lambdaidem.Event{Scope: "+", Key: "+", Attempt: 1, Handler: 1}},
		lambdaidem.EventTakenOver:  {do: func(t *testing.T, r *rig) { dead(t, r); r.send(t, first()) }, want: lambdaidem.Event{Scope: "+", Key: "+", Attempt: 2}},
		lambdaidem.EventAbandoned:  {opt: hold, do: func(t *testing.T, r *rig) { dead(t, r); r.send(t, first()) }, want: lambdaidem.Event{Scope: "+", Key: "+", Attempt: 1}},
		lambdaidem.EventStoreError: {do: fails(acquire, refused(lambdaidem.ReasonPermission)), want: lambdaidem.Event{Scope: "+", Key: "+", Reason: lambdaidem.ReasonPermission}},
		lambdaidem.EventFailedOpen: {opt: failOpen, do: fails(acquire, refused(lambdaidem.ReasonNoTable)), want: lambdaidem.Event{Scope: "+", Key: "+", Reason: lambdaidem.ReasonNoTable}},
		lambdaidem.EventAnswerLost: {do: func(t *testing.T, r *rig) {
			r.store.fail(complete, refused(lambdaidem.ReasonTooLarge))
			r.send(t, first())
		}, want: lambdaidem.Event{Scope: "+", Key: "+", Attempt: 1, Handler: 1, Reason: lambdaidem.ReasonTooLarge}},
		lambdaidem.EventUnreadable: {do: fails(acquire, refused(lambdaidem.ReasonForeign)), want: lambdaidem.Event{Scope: "+", Key: "+", Reason: lambdaidem.ReasonForeign}},
		lambdaidem.EventNoPrincipal: {opt: func(o *lambdaidem.Options) {
			o.Principal = func(context.Context, *lambdaidem.Request) (string, error) { return "", errWire }
		}, want: lambdaidem.Event{Scope: "+", Key: "+"}},
		lambdaidem.EventOutOfTime: {do: func(t *testing.T, r *rig) {
			ctx, cancel := context.WithTimeout(t.Context(), 0)
			defer cancel()
			r.sendCtx(ctx, t, first())
		}, want: lambdaidem.Event{Scope: "+", Key: "+"}},
		lambdaidem.EventLeaseLost: {h: func(context.Context, request) (response, error) {
			time.Sleep(time.Second)
			return response{StatusCode: 200}, nil
		},
			do: func(t *testing.T, r *rig) {
				r.store.fail(complete, func(context.Context, string, func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
					return lambdaidem.Record{}, lambdaidem.ErrLeaseLost
				})
				r.send(t, first())
			}, want: lambdaidem.Event{Scope: "+", Key: "+", Attempt: 1, Handler: 1}},
	} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if c.h == nil {
					c.h = slow(time.Second, 201)
				}
				if c.opt == nil {
					c.opt = func(*lambdaidem.Options) {}
				}
				r := newRig(c.h, c.opt)
				if c.do == nil {
					c.do = func(t *testing.T, r *rig) { r.send(t, first()) }
				}
				c.do(t, r)
				var found *lambdaidem.Event
				for _, e := range r.seen.all() {
					if e.Kind == kind {
						if found != nil {
							t.Errorf("it was told twice: %v", r.seen.kinds())
						}
						found = &e
					}
				}
				if found == nil {
					t.Fatalf("the observer saw %v", r.seen.kinds())
				}
				if (found.Scope != "") != (c.want.Scope != "") || (found.Key != "") != (c.want.Key != "") || found.Attempt != c.want.Attempt ||
					found.Reason != c.want.Reason || (found.Handler == time.Second) != (c.want.Handler != 0) || found.Duration < found.Handler {
					t.Errorf("the event is %+v", found)
				}
			})
		})
	}
}

// If the store reports which limit it exceeded, each event of the error does so too.
func TestO1_WhichLimitThrottles(t *testing.T) {
	r := newRig(nil, failOpen)
	r.store.fail(acquire, func(context.Context, string, func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
		return lambdaidem.Record{}, &lambdaidem.StoreError{Op: acquire, Reason: lambdaidem.ReasonThrottled, Throttle: lambdaidem.ThrottleKeyRange, NotApplied: true, Err: errWire}
	})
	r.send(t, first())
	for _, e := range r.seen.all()[:2] {
		if (e.Kind != lambdaidem.EventStoreError && e.Kind != lambdaidem.EventFailedOpen) || e.Throttle != lambdaidem.ThrottleKeyRange || e.Reason != lambdaidem.ReasonThrottled {
			t.Errorf("the event is %+v", e)
		}
	}
}

// Events contain a short hash of the key, unless an option asks for the key.
func TestO1_KeysAreHashed(t *testing.T) {
	r := newRig(nil)
	r.send(t, first())
	if got := r.seen.last(t).Key; len(got) != 12 || strings.Trim(got, "0123456789abcdef") != "" {
		t.Errorf("the key is told as %q", got)
	}
	r = newRig(nil, func(o *lambdaidem.Options) { o.ShowKeys = true })
	r.send(t, first())
	if got := r.seen.last(t).Key; got != "key-1" {
		t.Errorf("the key is told as %q", got)
	}
}

func TestO1_SlogObserver(t *testing.T) {
	var buf bytes.Buffer
	o := lambdaidem.SlogObserver(slog.New(slog.NewJSONHandler(&buf, nil)))
	o.Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.EventStoreError, RecordID: "r", Route: "POST /a", Caller: "c", Scope: "s", Key: "k", Attempt: 2, Duration: time.Second, Handler: time.Millisecond, Cached: true,
		Reason: lambdaidem.ReasonThrottled, Throttle: lambdaidem.ThrottleKeyRange, Err: errWire})
	var line map[string]any
	if err := json.Unmarshal(buf.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	delete(line, "time")
	want := map[string]any{"level": "WARN", "msg": "idempotency", "outcome": "store_error", "record": "r", "route": "POST /a", "caller": "c", "scope": "s", "key": "k", "attempt": 2.0,
		"duration": 1e9, "handler": 1e6, "cached": true, "reason": "throttled", "throttle": "key_range", "error": errWire.Error()}
	if fmt.Sprint(line) != fmt.Sprint(want) {
		t.Errorf("the line is %v, want %v", line, want)
	}
	buf.Reset()
	o.Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.EventNew})
	if text := buf.String(); !strings.Contains(text, `"INFO"`) || strings.Contains(text, "cached") || strings.Contains(text, "reason") || strings.Contains(text, "throttle") || strings.Contains(text, "error") {
		t.Errorf("the line is %s", text)
	}
}

// Warnings are on by default, and go to the logger that is the default at that time. They don't
// contain the key.
func TestO1_WarningsByDefault(t *testing.T) {
	var buf bytes.Buffer
	was := slog.Default()
	defer slog.SetDefault(was)
	store := newFaulty()
	g := lambdaidem.New(store) // before the logger is set
	slog.SetDefault(slog.New(slog.NewTextHandler(&buf, &slog.HandlerOptions{Level: slog.LevelDebug})))
	h := g.APIGatewayV2(status(201))
	for range 2 { // new and replayed
		if _, err := h(t.Context(), first()); err != nil {
			t.Fatal(err)
		}
	}
	if buf.Len() > 0 {
		t.Errorf("it logged %s", buf.String())
	}
	store.failAlways(acquire, refused(lambdaidem.ReasonNoTable))
	if _, err := h(t.Context(), first()); err != nil {
		t.Fatal(err)
	}
	if text := buf.String(); !strings.Contains(text, "WARN") || !strings.Contains(text, "no_table") || strings.Contains(text, "key-1") {
		t.Errorf("it logged %s", text)
	}
}

// Events that need an operator's attention are warnings, and no others.
func TestO1_WhatIsWorthAWarning(t *testing.T) {
	var buf bytes.Buffer
	o := lambdaidem.SlogObserver(slog.New(slog.NewTextHandler(&buf, &slog.HandlerOptions{Level: slog.LevelDebug})))
	for level, kinds := range map[string][]lambdaidem.Kind{
		"WARN": {lambdaidem.EventAbandoned, lambdaidem.EventUncertain, lambdaidem.EventLeaseLost, lambdaidem.EventTakenOver, lambdaidem.EventFailedOpen, lambdaidem.EventStoreError,
			lambdaidem.EventAnswerLost, lambdaidem.EventOutOfTime, lambdaidem.EventUnreadable, lambdaidem.EventNoPrincipal, lambdaidem.EventNeverStarted, lambdaidem.EventSwitchedOff},
		"INFO": {lambdaidem.EventNew, lambdaidem.EventReplayed, lambdaidem.EventInProgress, lambdaidem.EventMismatch, lambdaidem.EventKeyMissing, lambdaidem.EventKeyInvalid,
			lambdaidem.EventReleased},
		"DEBUG": {lambdaidem.EventBypassed}, // every GET causes one
	} {
		for _, kind := range kinds {
			buf.Reset()
			if o.Observe(t.Context(), lambdaidem.Event{Kind: kind}); !strings.Contains(buf.String(), "level="+level+" ") {
				t.Errorf("%s is logged as %s", kind, buf.String())
			}
		}
	}
}

// A request that is refused for its form gives an event of its own kind without a record. The event
// of an answer that can't be read has the record's id, so that an operator can find it.
func TestO1_EventsOfRefusals(t *testing.T) {
	for code, c := range map[lambdaidem.Code]struct {
		kind   lambdaidem.Kind
		change func(*request)
	}{
		lambdaidem.ErrKeyMissing:     {lambdaidem.EventKeyMissing, func(in *request) { delete(in.Headers, "idempotency-key") }},
		lambdaidem.ErrKeyInvalid:     {lambdaidem.EventKeyInvalid, func(in *request) { in.Headers["idempotency-key"] = "," }},
		lambdaidem.ErrRequestInvalid: {lambdaidem.EventKeyInvalid, func(in *request) { in.IsBase64Encoded = true }},
		lambdaidem.ErrBodyTooLarge:   {lambdaidem.EventKeyInvalid, func(in *request) { in.Body = strings.Repeat("x", 101) }},
		lambdaidem.ErrHeadersTooMany: {lambdaidem.EventKeyInvalid, func(in *request) { in.Headers["a"], in.Headers["b"] = "1", "1" }},
		lambdaidem.ErrURITooLong:     {lambdaidem.EventKeyInvalid, func(in *request) { in.RawQueryString = strings.Repeat("x", 101) }},
		lambdaidem.ErrPrincipalUnknown: {lambdaidem.EventNoPrincipal, func(in *request) {
			in.RequestContext.Authorizer = &authorizer{JWT: &jwtAuth{}}
		}},
	} {
		r := newRig(nil, func(o *lambdaidem.Options) { o.MaxBody, o.MaxHeaders, o.MaxURI = 100, 3, 100 })
		in := first()
		c.change(&in)
		if out := r.send(t, in); !strings.Contains(out.Body, string(code)) {
			t.Errorf("%s: the answer is %s", code, out.Body)
		}
		r.wantEvents(t, c.kind)
		if e := r.seen.last(t); e.RecordID != "" || e.Scope == "" || !errors.Is(e.Err, code) {
			t.Errorf("%s: the event is %+v", code, e)
		}
	}
	r := newRig(nil)
	r.store.Store = damaged{r.store.Store, []byte("{")}
	r.send(t, first())
	r.send(t, first())
	if e := r.seen.last(t); e.Kind != lambdaidem.EventUnreadable || e.RecordID != r.store.allClaims()[0].ID {
		t.Errorf("the event is %+v", e)
	}
}

// Errors that the handler's author has to fix are warnings by default: a failed condition without
// an explanation, a write that can't be made, and an error that no retry can fix. The log line
// names the write and the cause.
func TestO1_AFailureOfTheHandlersIsAWarning(t *testing.T) {
	rejection := func(code lambdaidem.Code, cause string) error {
		return &lambdaidem.Error{Code: code, Status: 500, Err: errors.New(cause)}
	}
	for name, c := range map[string]struct {
		err  error
		want string // in the log line; empty: no warning
	}{
		"a condition failed": {rejection(lambdaidem.ErrConditionFailed, "the write debit"), "the write debit"},
		"a write is invalid": {rejection(lambdaidem.ErrWriteInvalid, "the write credit"), "the write credit"},
		"wrapped":            {fmt.Errorf("pay: %w", rejection(lambdaidem.ErrWriteInvalid, "the write credit")), "the write credit"},
		"permanent":          {lambdaidem.Permanent(errors.New("no such currency")), "no such currency"},
		"permanent, wrapped": {fmt.Errorf("pay: %w", lambdaidem.Permanent(errors.New("no such currency"))), "no such currency"},
		"rejected":           {lambdaidem.Reject(402, "insufficient_funds", ""), ""},
		"retryable":          {lambdaidem.Retryable(errors.New("busy")), ""},
		"any other":          {errors.New("busy"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := lambdaidem.New(newFaulty(), func(o *lambdaidem.Options) { o.Namespace = "test" }).
				APIGatewayV2(func(context.Context, request) (response, error) { return response{}, c.err })
			logged := captureLog(t, func() { _, _ = h(t.Context(), first()) })
			if c.want == "" && logged != "" || !strings.Contains(logged, c.want) || strings.Count(logged, "\n") > 1 ||
				c.want != "" && (!strings.Contains(logged, "level=WARN") || !strings.Contains(logged, "record=lambdaidem#")) {
				t.Errorf("by default it logs %q, want %q", logged, c.want)
			}
			var buf bytes.Buffer
			o := lambdaidem.SlogObserver(slog.New(slog.NewTextHandler(&buf, nil)))
			h = lambdaidem.New(newFaulty(), func(opts *lambdaidem.Options) { opts.Namespace, opts.Observer = "test", o }).
				APIGatewayV2(func(context.Context, request) (response, error) { return response{}, c.err })
			_, _ = h(t.Context(), first())
			if strings.Contains(buf.String(), "level=WARN") != (c.want != "") {
				t.Errorf("SlogObserver logs %q", buf.String())
			}
			buf.Reset()
			replayed := captureLog(t, func() { _, _ = h(t.Context(), first()) })
			if name == "permanent" && (replayed != "" || strings.Contains(buf.String(), "level=WARN")) {
				t.Errorf("a replay warns again: %q %q", replayed, buf.String())
			}
		})
	}
}

// An answer that can't be read again gives one event, and no event for a replay.
func TestO1_AnUnreadableReplayIsOneEvent(t *testing.T) {
	t.Run("HTTP", func(t *testing.T) {
		for _, opt := range []func(*lambdaidem.Options){func(*lambdaidem.Options) {}, roomy} {
			r := newRig(nil, opt)
			r.store.Store = damaged{r.store.Store, []byte("{")}
			r.send(t, first())
			r.seen.forget()
			for range 3 {
				wantProblem(t, r.send(t, first()), 500, lambdaidem.ErrAnswerUnreadable)
			}
			r.wantEvents(t, lambdaidem.EventUnreadable, lambdaidem.EventUnreadable, lambdaidem.EventUnreadable)
			if e := r.seen.last(t); e.Attempt != 1 || e.Err == nil {
				t.Errorf("the event is %+v", e)
			}
		}
	})
	t.Run("Do", func(t *testing.T) {
		c := newCharges()
		if _, err := c.do(t, charge); err != nil {
			t.Fatal(err)
		}
		c.seen.forget()
		_, err := lambdaidem.Do(t.Context(), c.guard, charge, func(context.Context) (string, error) { return "ran", nil })
		if !errors.Is(err, lambdaidem.ErrAnswerUnreadable) || len(c.seen.kinds()) != 1 || c.seen.kinds()[0] != lambdaidem.EventUnreadable {
			t.Errorf("it returned %v, and told of %v", err, c.seen.kinds())
		}
	})
}

// An event's duration is that of the whole call so far. The handler's duration is a separate field.
func TestO1_DurationsOfAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(slow(time.Second, 201))
		for _, verb := range []string{acquire, complete} {
			r.store.fail(verb, after(func() { time.Sleep(3 * time.Second) }))
		}
		r.send(t, first())
		if e := r.seen.last(t); e.Duration != 7*time.Second || e.Handler != time.Second {
			t.Errorf("the call took %v, the handler %v; want 7 s and 1 s", e.Duration, e.Handler)
		}
	})
}
