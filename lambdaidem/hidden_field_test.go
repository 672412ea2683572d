package lambdaidem_test

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// receiptWithTag has a tag that hides the old field of the same name, which is no longer used.
type receiptWithTag struct {
	Number string `json:"Ref"`
	Ref    string
}

// partlyHidden has fields that encoding/json leaves out.
type partlyHidden struct {
	ID    string
	cents int
	Note  string `json:"-"`
}

// The first caller of Do and of a typed handler gets the same value as later callers, even if the
// JSON of the value lacks a part of it.
func TestR1_TheFirstResultIsThatOfItsReplays(t *testing.T) {
	t.Run("left out", func(t *testing.T) { wantSameResults(t, partlyHidden{"c-1", 500, "paid"}, partlyHidden{ID: "c-1"}) })
	t.Run("pointer", func(t *testing.T) { wantSameResults(t, &partlyHidden{"c-1", 500, "paid"}, &partlyHidden{ID: "c-1"}) })
	t.Run("int in any", func(t *testing.T) { wantSameResults[any](t, int64(500), 500.0) })
	t.Run("struct in any", func(t *testing.T) { wantSameResults[any](t, order{"o-1"}, map[string]any{"ID": "o-1"}) })
	t.Run("empty list", func(t *testing.T) {
		type list struct {
			Items []int `json:",omitempty"`
		}
		wantSameResults(t, list{[]int{}}, list{})
	})
}

// wantSameResults calls Do and a typed handler twice each, with a function that returns made.
func wantSameResults[T any](t *testing.T, made, want T) {
	t.Helper()
	g := lambdaidem.New(memstore.New(), quiet)
	typed := lambdaidem.Handler(g, "charge", func(context.Context, order) (string, error) { return "k", nil },
		func(context.Context, order) (T, error) { return made, nil })
	for _, caller := range []string{"first", "second"} {
		got, err := lambdaidem.Do(t.Context(), g, charge, func(context.Context) (T, error) { return made, nil })
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("the %s caller of Do got %#v, %v", caller, got, err)
		}
		got, err = typed(t.Context(), order{"o-1"})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("the %s invoker got %#v, %v", caller, got, err)
		}
	}
}

// A handler books what its step has charged. The first attempt must not book another amount than
// the retry, which gets the stored result.
func TestE5_TheFirstAttemptGetsTheStoredResult(t *testing.T) {
	var booked []int
	r := newRig(func(ctx context.Context, _ request) (response, error) {
		c, err := lambdaidem.Step(ctx, "charge", func(context.Context) (partlyHidden, error) { return partlyHidden{ID: "c-1", cents: 500}, nil })
		if err != nil {
			return response{}, err
		}
		if booked = append(booked, c.cents); len(booked) == 1 {
			return response{}, errWire
		}
		return response{StatusCode: http.StatusCreated}, nil
	})
	_, _ = r.handler(t.Context(), first())
	r.send(t, first())
	if !slices.Equal(booked, []int{0, 0}) {
		t.Errorf("the attempts booked %v", booked)
	}
}

// Payloads are compared by encoding/json's rule: fields that it leaves out don't count.
func TestF4_FieldsThatJSONLeavesOutDoNotCount(t *testing.T) {
	c := newCharges()
	for _, payload := range []partlyHidden{{"c-1", 500, "paid"}, {"c-1", 900, "again"}} {
		if _, err := c.do(t, lambdaidem.Call{Operation: "op", Key: "k", Payload: payload}); err != nil {
			t.Errorf("%+v: %v", payload, err)
		}
	}
	if _, err := c.do(t, lambdaidem.Call{Operation: "op", Key: "k", Payload: partlyHidden{ID: "c-2"}}); !errors.Is(err, lambdaidem.ErrPayloadMismatch) || c.runs != 1 {
		t.Errorf("another ID: %v after %d runs", err, c.runs)
	}
	a, errA := lambdaidem.HashKey(partlyHidden{"c-1", 500, "paid"})
	b, errB := lambdaidem.HashKey(partlyHidden{"c-1", 900, "again"})
	if a != b || errors.Join(errA, errB) != nil {
		t.Errorf("the keys are %s and %s, %v", a, b, errors.Join(errA, errB))
	}
}

// A step's result has an interface type, so its type is only known after the charge.
func TestE5_AStepWhoseResultHidesAFieldRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		charged := 0
		r := newRig(func(ctx context.Context, _ request) (response, error) {
			_, err := lambdaidem.Step(ctx, "charge", func(context.Context) (any, error) { charged++; return receiptWithTag{Number: "r-1"}, nil })
			if err != nil {
				return response{}, err
			}
			return response{StatusCode: http.StatusCreated}, nil
		})
		_, _ = r.handler(t.Context(), first())
		time.Sleep(2 * leaseWithoutDeadline)
		out, err := r.handler(t.Context(), first())
		if charged != 1 || out.StatusCode != http.StatusCreated {
			t.Errorf("charged %d times; %d %v", charged, out.StatusCode, err)
		}
	})
}

func TestR1_AResultThatHidesAFieldIsReplayed(t *testing.T) {
	r := newRig(nil)
	charged := 0
	do := func() error {
		_, err := lambdaidem.Do(t.Context(), r.guard, charge, func(context.Context) (any, error) { charged++; return receiptWithTag{Number: "r-1"}, nil })
		return err
	}
	if err := do(); err != nil {
		t.Fatal(err)
	}
	if err := do(); err != nil {
		t.Errorf("the retry: %v", err)
	}
}

// A step with a static type was stored by the version before. The retry runs on the new version.
func TestE5_AStoredStepWhoseTypeHidesAFieldIsRead(t *testing.T) {
	r := newRig(nil)
	n := 0
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		var err error
		if n++; n == 1 { // what the version before stored: the same JSON
			_, err = lambdaidem.Step(ctx, "charge", func(context.Context) (map[string]string, error) { return map[string]string{"Ref": "r-1"}, nil })
			if err == nil {
				err = errWire
			}
			return response{}, err
		}
		_, err = lambdaidem.Step(ctx, "charge", func(context.Context) (receiptWithTag, error) { t.Error("it runs again"); return receiptWithTag{}, nil })
		return response{StatusCode: http.StatusCreated}, err
	})
	_, _ = r.handler(t.Context(), first())
	if out, err := r.handler(t.Context(), first()); err != nil || out.StatusCode != http.StatusCreated {
		t.Errorf("the retry: %d %v", out.StatusCode, err)
	}
}
