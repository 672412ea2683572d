package lambdaidem_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// X2: a problem document (RFC 9457) is what encoding/json makes of it, whatever it
// says: with escapes for HTML, and with U+FFFD for what is no UTF-8.
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
