package lambdaidem_test

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// The tests of this file are about deployments that change the JSON of a payload, but none of its
// fields. The guard may replay the answer to a request from before the deployment, or say that it
// can't tell whether the request is the same. It must not say that the key was used with another
// request, and ask for a new key: the client would pay twice.

// Two versions of one event's type. The second one has the option omitempty, and nothing else.
type (
	taggedV1 struct {
		ID   string   `json:"id"`
		Tags []string `json:"tags"`
	}
	taggedV2 struct {
		ID   string   `json:"id"`
		Tags []string `json:"tags,omitempty"`
	}
)

// A deployment adds omitempty to a field of the payload. The client repeats its request
// {"id":"o-1","tags":[]}, which the version before has carried out. The guard may replay the
// answer, or say that it can't tell whether the request is the same. It must not say that the key
// was used with another request, and ask for a new key: the client would pay twice.
func TestF4_ADeploymentAddsOmitemptyToAPayload(t *testing.T) {
	store := memstore.New()
	guard := lambdaidem.New(store, func(o *lambdaidem.Options) { o.Namespace, o.Observer = "shop", lambdaidem.Discard })
	v1 := func(ctx context.Context, key string, in taggedV1) error {
		_, err := lambdaidem.Do(ctx, guard, lambdaidem.Call{Operation: "charge", Key: key, Payload: in}, func(context.Context) (string, error) { return "paid", nil })
		return err
	}
	if err := v1(t.Context(), "o-1", taggedV1{"o-1", []string{}}); err != nil {
		t.Fatal(err)
	}
	got, err := lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "charge", Key: "o-1", Payload: taggedV2{"o-1", []string{}}},
		func(context.Context) (string, error) { return "paid again", nil })
	if e, ok := errors.AsType[*lambdaidem.Error](err); ok && !strings.Contains(e.Detail, "can't tell") || err == nil && got != "paid" {
		t.Errorf("the retry got %q, %v; want the first answer, or that the guard can't tell whether the request is the same", got, err)
	}
}

// The same deployment after an attempt that asked for a downstream key and was released: in doubt,
// the request runs under the same downstream key (docs/effects.md, "Steps and downstream keys").
func TestE6_ADeploymentAddsOmitemptyAfterADownstreamKey(t *testing.T) {
	store := memstore.New()
	guard := lambdaidem.New(store, func(o *lambdaidem.Options) { o.Namespace, o.Observer = "shop", lambdaidem.Discard })
	var keys []string
	_, err := lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "charge", Key: "o-1", Payload: taggedV1{"o-1", []string{}}}, func(ctx context.Context) (string, error) {
		keys = append(keys, lambdaidem.DownstreamKey(ctx, "card"))
		return "", errBroken
	})
	if !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	_, err = lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "charge", Key: "o-1", Payload: taggedV2{"o-1", []string{}}}, func(ctx context.Context) (string, error) {
		keys = append(keys, lambdaidem.DownstreamKey(ctx, "card"))
		return "paid", nil
	})
	if err != nil || len(keys) != 2 || keys[0] != keys[1] {
		t.Errorf("the retry got %v, and the downstream keys are %q", err, keys)
	}
}

// decimal is like the decimal types of several libraries: zero has more than one form.
type decimal struct {
	value *int64
}

func (d decimal) IsZero() bool { return d.value == nil || *d.value == 0 }

func (d decimal) MarshalText() ([]byte, error) {
	if d.value == nil {
		return []byte("0"), nil
	}
	return strconv.AppendInt(nil, *d.value, 10), nil
}

func (d *decimal) UnmarshalText(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	*d = decimal{value: &n}
	return err
}

// The fix "omitzero" of Go's modernizers replaces the option omitempty, which has no effect on a
// struct, by omitzero, which has one. The invoker of a typed handler repeats its event.
func TestF4_ADeploymentReplacesOmitemptyWithOmitzero(t *testing.T) {
	type was struct {
		ID       string  `json:"id"`
		Discount decimal `json:"discount,omitempty"` //nolint:modernize // as before the deployment
	}
	type is struct {
		ID       string  `json:"id"`
		Discount decimal `json:"discount,omitzero"`
	}
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Namespace, o.Observer = "shop", lambdaidem.Discard })
	event := []byte(`{"id":"o-1","discount":"0"}`)
	runs := 0
	before := lambdaidem.Handler(guard, "charge", func(_ context.Context, in was) (string, error) { return in.ID, nil },
		func(context.Context, was) (string, error) { runs++; return "paid", nil })
	after := lambdaidem.Handler(guard, "charge", func(_ context.Context, in is) (string, error) { return in.ID, nil },
		func(context.Context, is) (string, error) { runs++; return "paid again", nil })
	var first was
	var again is
	if err := errors.Join(json.Unmarshal(event, &first), json.Unmarshal(event, &again)); err != nil {
		t.Fatal(err)
	}
	if _, err := before(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	got, err := after(t.Context(), again)
	if e, ok := errors.AsType[*lambdaidem.Error](err); ok && !strings.Contains(e.Detail, "can't tell") || err == nil && got != "paid" {
		t.Errorf("the retry got %q, %v; want the first answer, or that the guard can't tell whether the request is the same", got, err)
	}
}

// money has its MarshalJSON method on the pointer: encoding/json calls it only for an addressable
// value.
type money struct{ Cents int }

func (m *money) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, int64(m.Cents), 10), nil }

// A deployment passes the payload by pointer, and not by value.
func TestF4_ADeploymentPassesAPayloadByPointer(t *testing.T) {
	type payment struct {
		ID     string
		Amount money
	}
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Namespace, o.Observer = "shop", lambdaidem.Discard })
	in := payment{"o-1", money{500}}
	call := func(payload any) (string, error) {
		return lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "charge", Key: "o-1", Payload: payload}, func(context.Context) (string, error) { return "paid", nil })
	}
	if _, err := call(in); err != nil {
		t.Fatal(err)
	}
	_, err := call(&in)
	if e, ok := errors.AsType[*lambdaidem.Error](err); ok && !strings.Contains(e.Detail, "can't tell") {
		t.Errorf("the retry got %v; want the first answer, or that the guard can't tell whether the request is the same", err)
	}
}
