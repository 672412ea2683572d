package lambdaidem_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// A hook may keep a Request, for example for its own log. The Request keeps nothing else of the
// call in memory, such as the answer, which may have 6 MB.
func TestAKeptRequestKeepsNoAnswer(t *testing.T) {
	var kept *lambdaidem.Request
	var answer weak.Pointer[string]
	r := newRig(func(context.Context, request) (response, error) {
		cookies := []string{strings.Repeat("x", 100)}
		answer = weak.Make(&cookies[0])
		return response{StatusCode: 201, Cookies: cookies}, nil
	}, func(o *lambdaidem.Options) {
		o.Skip = func(r *lambdaidem.Request) bool {
			kept = r
			return false
		}
	})
	if out := r.send(t, first()); len(out.Cookies) != 1 {
		t.Fatalf("the answer is %+v", out)
	}
	runtime.GC()
	if answer.Value() != nil {
		t.Error("the answer is still there")
	}
	runtime.KeepAlive(kept)
}
