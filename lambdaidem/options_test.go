package lambdaidem_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// New panics if an option's value can't be meant, and names the field.
func TestOptions_WhatCannotBeMeantPanics(t *testing.T) {
	for field, set := range map[string][]func(*lambdaidem.Options){
		"KeyHeader":     {func(o *lambdaidem.Options) { o.KeyHeader = "Idempotency Key" }, func(o *lambdaidem.Options) { o.KeyHeader = "Schlüssel" }, func(o *lambdaidem.Options) { o.KeyHeader = "a:" }},
		"Methods":       {func(o *lambdaidem.Options) { o.Methods = []string{"POST", ""} }},
		"TTL":           {func(o *lambdaidem.Options) { o.TTL = lambdaidem.MinTTL - 1 }, func(o *lambdaidem.Options) { o.TTL = -time.Hour }},
		"Policy":        {func(o *lambdaidem.Options) { o.Policy = "retry" }},
		"MaxSkew":       {func(o *lambdaidem.Options) { o.MaxSkew = -1 }},
		"LeaseDuration": {func(o *lambdaidem.Options) { o.LeaseDuration = -1 }},
		"Reserve":       {func(o *lambdaidem.Options) { o.Reserve = -1 }},
		"IDPrefix": {func(o *lambdaidem.Options) { o.IDPrefix = strings.Repeat("x", 41) }, func(o *lambdaidem.Options) { o.IDPrefix = "a#b" },
			func(o *lambdaidem.Options) { o.IDPrefix = "a*" }, func(o *lambdaidem.Options) { o.IDPrefix = "a?" }, func(o *lambdaidem.Options) { o.IDPrefix = "ä" }},
		"CleanupTimeout": {func(o *lambdaidem.Options) { o.CleanupTimeout = -1 }},
		"Wait":           {func(o *lambdaidem.Options) { o.Wait = -1 }},
		"MinRunTime":     {func(o *lambdaidem.Options) { o.MinRunTime = -1 }},
		"RetryAfter":     {func(o *lambdaidem.Options) { o.RetryAfter = -1 }},
		"MismatchStatus": {func(o *lambdaidem.Options) { o.MismatchStatus = 400 }},
		"ReplayMarks": {func(o *lambdaidem.Options) { o.ReplayMarks = []lambdaidem.Mark{{}} },
			func(o *lambdaidem.Options) {
				o.ReplayMarks = []lambdaidem.Mark{{Name: "X", Value: "a\r\nSet-Cookie: b"}}
			},
			func(o *lambdaidem.Options) { o.ReplayMarks = []lambdaidem.Mark{{Name: "X", Value: "a\x7f"}} }},
		"Cache.Entries": {func(o *lambdaidem.Options) { o.Cache.Entries = -1 }},
		"Cache.Bytes":   {func(o *lambdaidem.Options) { o.Cache.Bytes = -1 }},
		"Cache.MaxAge":  {func(o *lambdaidem.Options) { o.Cache.MaxAge = -1 }},
		"MaxURI":        {func(o *lambdaidem.Options) { o.MaxURI = -1 }},
		"MaxBody":       {func(o *lambdaidem.Options) { o.MaxBody = -1 }},
		"MaxHeaders":    {func(o *lambdaidem.Options) { o.MaxHeaders = -1 }},
		"MaxJSONDepth":  {func(o *lambdaidem.Options) { o.MaxJSONDepth = -1 }},
		"MaxStepBytes":  {func(o *lambdaidem.Options) { o.MaxStepBytes = -1 }},
	} {
		for _, opt := range set {
			for name, build := range map[string]func(){
				"New":  func() { lambdaidem.New(memstore.New(), opt) },
				"With": func() { lambdaidem.New(memstore.New()).With(opt) },
			} {
				func() {
					defer func() {
						if text := fmt.Sprint(recover()); !strings.Contains(text, "Options."+field) {
							t.Errorf("%s with a wrong %s panicked with %q", name, field, text)
						}
					}()
					build()
				}()
			}
		}
	}
}

func TestOptions_NoStorePanics(t *testing.T) {
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, "store") {
			t.Errorf("it panicked with %q", text)
		}
	}()
	lambdaidem.New(nil)
}

// Without random numbers there are no tokens for leases, so nothing runs.
func TestL3_NoRandomnessNoAttempt(t *testing.T) {
	r := newRig(nil, func(o *lambdaidem.Options) { o.Random = iotest.ErrReader(io.ErrUnexpectedEOF) })
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, "Options.Random") {
			t.Errorf("it panicked with %q", text)
		}
		r.wantRuns(t, 0)
	}()
	r.send(t, first())
}

// With shares the store, keeps the options that were set, and doesn't change the first guard.
func TestOptions_With(t *testing.T) {
	r := newRig(nil, func(o *lambdaidem.Options) { o.MismatchStatus = http.StatusConflict })
	derived := &rig{store: r.store, seen: r.seen, guard: r.guard.With(func(o *lambdaidem.Options) {
		if o.MismatchStatus != http.StatusConflict || o.TTL != 24*time.Hour {
			t.Errorf("With shows the options %+v", o)
		}
		o.KeyHeader = "X-Key"
	})}
	derived.handler = derived.guarded(nil)
	r.send(t, first())
	in := first()
	in.Headers["x-key"] = "key-1"
	delete(in.Headers, "idempotency-key")
	if out := derived.send(t, in); !replayed(out) {
		t.Errorf("the derived guard answers %+v", out)
	}
	in.Body = "{}"
	wantProblem(t, derived.send(t, in), http.StatusConflict, lambdaidem.ErrPayloadMismatch)
	wantProblem(t, r.send(t, in), http.StatusBadRequest, lambdaidem.ErrKeyMissing)
}

// A guard may serve several invocations at the same time.
func TestOptions_AGuardIsSafeForConcurrentUse(t *testing.T) {
	r := newRig(nil)
	done := make(chan response)
	const n = 64
	for i := range n {
		go func() {
			out, err := r.handler(t.Context(), post(fmt.Sprint("key-", i%8), `{}`))
			if err != nil {
				t.Error(err)
			}
			done <- out
		}()
	}
	for range n {
		if out := <-done; out.StatusCode != http.StatusCreated && out.StatusCode != http.StatusConflict {
			t.Errorf("one got %d %s", out.StatusCode, out.Body)
		}
	}
	r.wantRuns(t, 8)
}

// Guards derived from one guard share no slice with it or with each other.
func TestOptions_DerivedGuardsAreApart(t *testing.T) {
	roomy := append(make([]string, 0, 8), "X-Trace")
	base := newRig(nil, func(o *lambdaidem.Options) { o.UnstoredHeaders = roomy })
	without := func(name string) *rig {
		r := &rig{store: base.store, seen: base.seen}
		r.guard = base.guard.With(func(o *lambdaidem.Options) { o.UnstoredHeaders = append(o.UnstoredHeaders, name) })
		return r
	}
	noCookies := without("Set-Cookie")
	without("X-Other")
	noCookies.handler = noCookies.guarded(func(context.Context, request) (response, error) {
		return response{StatusCode: 200, Cookies: []string{"session=secret"}}, nil
	})
	noCookies.send(t, first())
	if out := noCookies.send(t, first()); len(out.Cookies) > 0 {
		t.Errorf("the replay has the cookies %v", out.Cookies)
	}
}

// The largest int as MaxBody means no limit, and not an empty body.
func TestS2_TheLargestBodyBound(t *testing.T) {
	g := lambdaidem.New(memstore.New(), anonymous, func(o *lambdaidem.Options) { o.MaxBody = math.MaxInt })
	h := g.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(w, r.Body); err != nil {
			t.Error(err)
		}
	}))
	r := posted(t, "/a")
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader("whole")), 5
	if w := serve(h, r); w.Code != http.StatusOK || w.Body.String() != "whole" {
		t.Errorf("the answer is %d %q", w.Code, w.Body)
	}
}

// If an option function changes a slice in place, the change affects only that guard, whether the
// slice came from another guard or from the user.
func TestOptions_SlicesAreNobodyElses(t *testing.T) {
	base := newRig(nil)
	derived := &rig{store: newFaulty(), seen: &recorder{}}
	derived.guard = base.guard.With(func(o *lambdaidem.Options) {
		o.Methods[0] = "PUT"
		o.ReplayMarks[0] = lambdaidem.Mark{Name: "X-Derived", Value: "1"}
	})
	derived.handler = derived.guarded(nil)
	base.send(t, first())
	if out := base.send(t, first()); !replayed(out) || len(out.Headers) != 1 {
		t.Errorf("the first guard answers %+v", out)
	}
	put := first()
	put.RequestContext.HTTP.Method = http.MethodPut
	derived.send(t, put)
	if out := derived.send(t, put); out.Headers["X-Derived"] != "1" || replayed(out) {
		t.Errorf("the derived guard answers %+v", out)
	}

	methods := []string{"put", "Patch"}
	lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Methods = methods })
	if methods[0] != "put" || methods[1] != "Patch" {
		t.Errorf("the user's own slice became %v", methods)
	}
}

// The default namespace is the name of the Lambda function.
func TestF1_TheNamespaceIsTheFunctionsName(t *testing.T) {
	was := lambdacontext.FunctionName
	defer func() { lambdacontext.FunctionName = was }()
	who := lambdaidem.Identity{Operation: "charge", Key: "k"}
	ids := map[string]bool{}
	for _, name := range []string{"payments", "refunds", ""} { // outside Lambda, the name is empty
		lambdacontext.FunctionName = name
		g := lambdaidem.New(memstore.New())
		if name != "" {
			if named := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Namespace = name }); g.RecordID(who) != named.RecordID(who) {
				t.Errorf("the namespace of %s is another", name)
			}
		}
		ids[g.RecordID(who)] = true
	}
	if len(ids) != 3 {
		t.Errorf("three functions have %d namespaces", len(ids))
	}
}
