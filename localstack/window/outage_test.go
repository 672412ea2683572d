package window_test

import (
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/localstack/rehearsal"
)

// during sends a request while the table is in a state, and returns what the page shows of it.
func during(t *testing.T, w world, state, form string) *view {
	t.Helper()
	if err := w.faults.SetTable(state); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.faults.SetTable(rehearsal.Works) }() // a state that there is
	do(t, w.page, "/clear", "")
	do(t, w.page, "/send", form)
	return until(t, w.page, "", idle)
}

// If all replies are lost, the record is locked and no handler runs: the caption says so. The
// process repeats the release in its next invocation, which is of another request.
func TestOutage_CaptionsSayWhetherTheHandlerRan(t *testing.T) {
	w, err := start()
	if err != nil {
		t.Fatal(err)
	}
	v := during(t, w, "lost-replies", payment("deaf-1"))
	expect(t, v.lines(), `locks the record .* \[in progress\]$`, `the reply does not arrive`, `to client: 503 idempotency_store_unavailable`)
	without(t, v.lines(), "runs the handler")
	if look := v.state.Look; !strings.Contains(look, "no reply reached the process") || !strings.Contains(look, "the handler does not run") || v.state.Sum != "" {
		t.Errorf("it says to look for %q, and sums up %q", look, v.state.Sum)
	}

	v = during(t, w, rehearsal.Works, payment("deaf-2"))
	expect(t, v.lines(), `key deaf-2$`, `locks the record .* \[in progress\]$`, `: runs the handler$`, `stores the answer .* \[completed\]$`, `to client: 201 Created$`)
	without(t, v.lines(), "guarded call inside the handler")
	if !strings.HasPrefix(v.state.Look, "There was no record") || !strings.HasPrefix(v.state.Sum, "Key deaf-2 of POST /payments: "+once) {
		t.Errorf("it says to look for %q, and sums up %q", v.state.Look, v.state.Sum)
	}

	v = during(t, w, rehearsal.Works, payment("deaf-1"))
	expect(t, v.lines(), `takes the record over`, `: runs the handler$`, `to client: 201 Created$`)
	if look := v.state.Look; !strings.Contains(look, "takes the record over") || strings.Contains(look, "runs again") {
		t.Errorf("it says to look for %q", look)
	}

	v = during(t, w, "unreachable", payment("deaf-3"))
	if look := v.state.Look; !strings.Contains(look, "no handler runs") {
		t.Errorf("it says to look for %q", look)
	}
}

// A process that another program has killed, such as the switchboard of up, dies like one that
// the page has killed. Its request is not lost on the way: it is never sent.
func TestKill_ByAnotherProgramIsADeath(t *testing.T) {
	w, err := start()
	if err != nil {
		t.Fatal(err)
	}
	for function, test := range map[string]struct{ form, dies string }{
		"PaymentsFunction":  {payment("killed-1"), "has run the handler, and dies before the write that stores the answer leaves it$"},
		"TransfersFunction": {`{"sample":"transfer","key":"killed-2"}`, "dies in a call inside the handler, before the write that stores its answer leaves the process$"},
	} {
		t.Run(function, func(t *testing.T) {
			w.faults.Arm(rehearsal.Once{
				Name: "kill " + function, Kind: rehearsal.Completion,
				Match: rehearsal.Sent(w.stack.Emulator(), function), Fault: rehearsal.Kill(w.stack.Emulator(), function),
			})
			v := during(t, w, rehearsal.Works, test.form)
			expect(t, v.lines(), `: runs the handler$`, test.dies, `is killed`, `^Lambda to client: 500`)
			without(t, v.lines(), `\(lost\)|has run the handler, and dies .*its answer`)
		})
	}
}

// A request that the server of the API refuses by itself reaches neither a gateway nor a guard.
func TestRequest_RefusedByTheServerIsSaidToBe(t *testing.T) {
	w, err := start()
	if err != nil {
		t.Fatal(err)
	}
	v := during(t, w, rehearsal.Works, payment(strings.Repeat("k", 2<<20)))
	if look := v.state.Look; !strings.Contains(look, "did not work") || !strings.Contains(look, "431") || len(look) > 1000 {
		t.Errorf("it says to look for %.1000q", look)
	}
}
