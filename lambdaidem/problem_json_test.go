package lambdaidem_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// A problem document (RFC 9457) is written as encoding/json writes it, whatever it contains: with
// escapes for HTML, and with U+FFFD in place of invalid UTF-8.
func TestX2_AProblemIsWrittenAsEncodingJSONDoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "<b>&amp;</b>", "a\u2028b\u2029", "\xff<", `"quoted\"`, "\x00\x1f\x7f", "ü\ufffd"}))
		e := &lambdaidem.Error{
			Type: text.Draw(rt, "type"), Code: lambdaidem.Code(rapid.SampledFrom([]string{"own_", "idempotency_"}).Draw(rt, "kind") + text.Draw(rt, "code")), Detail: text.Draw(rt, "detail"),
			Status: rapid.SampledFrom([]int{-1, 1, 400, 404, 409, 418, 500, 503, 599}).Draw(rt, "status"),
		}
		got := newRig(func(context.Context, request) (response, error) { return response{}, e }).send(t, first())

		typed := e.Type
		if typed == "" {
			typed = "about:blank"
			if strings.HasPrefix(string(e.Code), "idempotency_") {
				typed = "https://github.com/lambdaidem/toolkit/blob/main/docs/errors.md#" + string(e.Code)
			}
		}
		want, err := json.Marshal(struct {
			Type   string `json:"type"`
			Title  string `json:"title"`
			Status int    `json:"status"`
			Detail string `json:"detail,omitempty"`
			Code   string `json:"code"`
		}{typed, http.StatusText(e.Status), e.Status, e.Detail, string(e.Code)})
		if err != nil {
			rt.Fatal(err)
		}
		if got.Body != string(want) {
			rt.Fatalf("%s\nwant\n%s", got.Body, want)
		}
	})
}

// The document of a request in progress is encoded only once. It is used for no other problem: each
// problem in this test differs from it in one field.
func TestX2_ProblemsAreToldApartFromTheOneOfARequestInProgress(t *testing.T) {
	base := lambdaidem.Error{Code: lambdaidem.ErrInProgress, Status: 409, RetryAfter: time.Second,
		Detail: "A request with this idempotency key is in progress. Repeat this request later to get its answer."}
	of := func(change func(*lambdaidem.Error)) *lambdaidem.Error {
		e := base
		change(&e)
		return &e
	}
	same := func(*lambdaidem.Error) {}
	for i, e := range []*lambdaidem.Error{
		of(same),
		of(func(e *lambdaidem.Error) { e.Type = "https://example.com/b" }), of(same),
		of(func(e *lambdaidem.Error) { e.Detail = "" }), of(same),
		of(func(e *lambdaidem.Error) { e.Code = "other" }), of(same),
		of(func(e *lambdaidem.Error) { e.Detail = "b" }), of(same),
		of(func(e *lambdaidem.Error) { e.Status = 422 }), of(same),
		of(func(e *lambdaidem.Error) { e.RetryAfter = 2 * time.Second }), of(same),
		of(func(e *lambdaidem.Error) { e.RetryAfter = 0 }), of(same),
	} {
		got := newRig(func(context.Context, request) (response, error) { return response{}, e }).send(t, first())
		var doc struct {
			Type, Detail, Code string
			Status             int
		}
		if err := json.Unmarshal([]byte(got.Body), &doc); err != nil {
			t.Fatal(err)
		}
		typed := cmp.Or(e.Type, "about:blank")
		if e.Type == "" && strings.HasPrefix(string(e.Code), "idempotency_") {
			typed = "https://github.com/lambdaidem/toolkit/blob/main/docs/errors.md#" + string(e.Code)
		}
		if doc.Type != typed || doc.Code != string(e.Code) || doc.Detail != e.Detail || doc.Status != e.Status || got.StatusCode != e.Status {
			t.Errorf("%d: %d %s; want %+v", i, got.StatusCode, got.Body, e)
		}
		want := map[string]string{"Content-Type": "application/problem+json"}
		if e.RetryAfter > 0 {
			want["Retry-After"] = strconv.Itoa(int(e.RetryAfter.Seconds()))
		}
		if !maps.Equal(got.Headers, want) {
			t.Errorf("%d: the headers are %v; want %v", i, got.Headers, want)
		}
	}
}

// What a hook changes in one of the guard's answers is neither in the next answer nor in another
// header's value.
func TestR2_AHookChangesOneAnswerAlone(t *testing.T) {
	times := 0
	r := newRig(func(context.Context, request) (response, error) {
		return response{}, lambdaidem.Uncertain(errors.New("still at it"))
	},
		func(o *lambdaidem.Options) {
			o.OnOwnAnswer = func(_ context.Context, _ *lambdaidem.Request, resp *lambdaidem.Response, _ *lambdaidem.Error) {
				times++
				resp.Body += strconv.Itoa(times)
				for _, name := range []string{"Content-Type", "Retry-After"} {
					values := resp.Header[name]
					values[0] += "!"
					resp.Header[name] = append(values, "more")
				}
			}
		})
	if _, err := r.handler(t.Context(), first()); err == nil {
		t.Fatal("the first request got an answer")
	}
	for i := 1; i <= 2; i++ {
		got := r.send(t, first())
		if got.StatusCode != 409 || !strings.HasSuffix(got.Body, "}"+strconv.Itoa(i)) ||
			got.Headers["Content-Type"] != "application/problem+json!, more" || got.Headers["Retry-After"] != "1!, more" {
			t.Errorf("%d: %d %v %s", i, got.StatusCode, got.Headers, got.Body)
		}
	}
}

// The text of an error is read once, when the error is answered, because the text may be in a
// buffer that is used again.
func TestX2_AProblemHoldsNothingOfItsError(t *testing.T) {
	buf := make([]byte, 8)
	r := newRig(func(_ context.Context, in request) (response, error) {
		detail := unsafe.String(&buf[0], copy(buf, in.Body)) //nolint:gosec // what the test is about
		return response{}, lambdaidem.Reject(404, "no_account", detail)
	})
	for _, account := range []string{"alice-12", "bobby-98"} {
		if got := r.send(t, post("key-"+account, account)); !strings.Contains(got.Body, `"detail":"`+account+`"`) {
			t.Errorf("%s gets %s", account, got.Body)
		}
	}
}
