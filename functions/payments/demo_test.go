package main

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func TestX1_FailureAskedForIsReleasedAndRunsAgain(t *testing.T) {
	h, all := setUp(t)
	e := post("key-1", validOrder)
	e.Headers["x-demo-fail-attempts"] = "1"
	expectProblem(t, call(t, h, e), http.StatusInternalServerError, "demo_failure", "Attempt 1 failed")
	if resp := call(t, h, e); resp.StatusCode != http.StatusCreated {
		t.Errorf("attempt 2: %d %s; want 201", resp.StatusCode, resp.Body)
	}
	all.expect(t, 1)
}

func TestDelayAskedForIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := setUp(t)
		e := post("key-1", validOrder)
		e.Headers["x-demo-delay-ms"] = "1500"
		began := time.Now()
		if resp := call(t, h, e); resp.StatusCode != http.StatusCreated || time.Since(began) != 1500*time.Millisecond {
			t.Errorf("%d after %v; want 201 after 1.5s", resp.StatusCode, time.Since(began))
		}
	})
}

func TestL5_DelayEndsWithTheHandlersTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, all := setUp(t)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		e := post("key-1", validOrder)
		e.Headers["x-demo-delay-ms"] = "60000"
		resp, err := h(ctx, e)
		if err != nil {
			t.Fatal(err)
		}
		expectProblem(t, resp, http.StatusServiceUnavailable, "demo_out_of_time", "")
		all.expect(t, 0)
	})
}

func TestDeafnessAskedForOutlastsTheHandlersTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := setUp(t)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		e := post("key-1", validOrder)
		e.Headers["x-demo-deaf-ms"] = "15000"
		began := time.Now()
		if _, err := h(ctx, e); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 15*time.Second {
			t.Errorf("the handler took %v; want 15s, beyond its deadline", took)
		}
	})
}

func TestDemoHeadersAreChecked(t *testing.T) {
	for _, header := range []string{delayHeader, deafHeader, failHeader, hangHeader, dieHeader} {
		for _, value := range []string{"soon", "-1", "1.5", "99999999"} {
			h, _ := setUp(t)
			e := post("key-1", validOrder)
			e.Headers[header] = value
			expectProblem(t, call(t, h, e), http.StatusBadRequest, "demo_invalid", header)
		}
	}
}

func TestWithoutDemoTheHeadersMeanNothing(t *testing.T) {
	h, _, _ := setUpWith(&fakeTable{}, func(app http.Handler) http.Handler { return app })
	e := post("key-1", validOrder)
	e.Headers[failHeader], e.Headers[delayHeader] = "1", "soon"
	if resp := call(t, h, e); resp.StatusCode != http.StatusCreated {
		t.Errorf("%d %s; want 201", resp.StatusCode, resp.Body)
	}
}
