package emulator_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/localstack/emulator"
)

// A middleware sees every request, and its trace ID is that of the invocation, whose events
// are observed in order.
func TestObserve_RequestsProcessesAndInvocations(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	traces := map[string]string{} // paths by trace ID
	say := func(format string, args ...any) {
		seen = append(seen, fmt.Sprintf(format, args...))
	}
	e, _ := start(t, func(o *emulator.Options) {
		o.Template.Function("Probe").Timeout = 500 * time.Millisecond
		o.Middleware = func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				traces[emulator.TraceID(r.Context())] = r.Header.Get("X-Do")
				mu.Unlock()
				next.ServeHTTP(w, r)
				mu.Lock()
				defer mu.Unlock()
				say("%s is over", r.Header.Get("X-Do"))
			})
		}
		o.Observe = func(e emulator.Event) {
			mu.Lock()
			defer mu.Unlock()
			kind := []string{"taken", "timed out", "answered", "ended"}[e.Kind]
			if e.Kind == emulator.ProcessEnded {
				say("process %s: %s", kind, e.Reason)
			} else {
				say("%s %s", traces[e.TraceID], kind)
			}
			if e.Function != "Probe" || e.PID == 0 || e.Started.IsZero() {
				t.Errorf("an event is %+v", e)
			}
		}
	})
	for _, what := range []string{"about", "exit", "hang"} {
		send(t, http.MethodPost, e.URL()+"/payments", "{}", "X-Do: "+what)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	want := []string{
		"about taken", "about answered", "about is over",
		"exit taken", "process ended: Runtime exited with error: exit status", "exit is over",
		"hang taken", "hang timed out", "hang is over",
		"process ended: Runtime exited with error: signal: killed",
	}
	slices.SortStableFunc(seen, func(a, b string) int { // the killed process's end may come before the answer or after it
		return strings.Compare(last(a), last(b))
	})
	if len(seen) != len(want) || !slices.EqualFunc(seen, want, strings.HasPrefix) {
		t.Errorf("observed:\n%s\nwant:\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
	}
}

func last(event string) string {
	if strings.HasSuffix(event, "signal: killed") {
		return "last"
	}
	return ""
}
