package window_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
	"github.com/lambdaidem/toolkit/localstack/rehearsal"
	"github.com/lambdaidem/toolkit/localstack/stack"
)

// A story's fault strikes the story's own request, whatever other tabs and clients do meanwhile,
// and no other tab can take the fault back.
func TestStory_IsLeftAloneByOthers(t *testing.T) {
	api, page := running(t)
	status, text := 0, ""
	refusals := map[string]string{"/fault/kill": "", "/send": payment("meanwhile-2"), "/repeat": "", "/clear": ""}
	afterWrite(t, rehearsal.Lock, func(rehearsal.Access) {
		for command, body := range refusals {
			_, refusals[command] = call(t, http.MethodPost, page+command, body)
		}
		status, text = call(t, http.MethodPost, api+"/payments", `{"amount":1,"currency":"EUR"}`,
			"Authorization", "Bearer "+stack.Token("alice"), "Idempotency-Key", "meanwhile-1", "Content-Type", "application/json")
	})
	do(t, page, "/story/dies", payment("order-1"))
	v := until(t, page, "", func(v *view) bool { return matching(v.lines(), "and dies") > 0 })
	if status != http.StatusCreated || matching(v.lines(), "and dies") != 1 {
		t.Errorf("the request of another client: %d %s, in\n%s", status, text, strings.Join(v.lines(), "\n"))
	}
	for command, refusal := range refusals {
		if !strings.Contains(refusal, "a story is being played") {
			t.Errorf("%s during a story: %q", command, refusal)
		}
	}
	if v := until(t, page, "", idle); strings.Contains(v.state.Look, "not go as planned") {
		t.Errorf("it says to look for %q", v.state.Look)
	}
}

// A story in which another program breaks more than the story does says what happened instead.
func TestStory_DisturbedByOthersDoesNotGoAsPlanned(t *testing.T) {
	w, err := start()
	if err != nil {
		t.Fatal(err)
	}
	kill := rehearsal.Kill(w.stack.Emulator(), "PaymentsFunction")
	afterEach(t, rehearsal.Takeover, func(taken rehearsal.Access) {
		// A request that an earlier test has left behind must not use up the faults.
		ofRecord := func(_ *proxy.Request, a rehearsal.Access) bool { return a.Record == taken.Record }
		w.faults.Arm(rehearsal.Once{Name: "disturb 1 " + taken.Record, Kind: rehearsal.Completion, Match: ofRecord, Fault: proxy.LoseReply})
		w.faults.Arm(rehearsal.Once{Name: "disturb 2 " + taken.Record, Kind: rehearsal.Completion, Match: ofRecord, Fault: kill})
	})
	do(t, w.page, "/story/dies", payment("order-1"))
	v := until(t, w.page, "", idle)
	if look := v.state.Look; !strings.Contains(look, "did not go as planned. The process died after its answer was stored.") {
		t.Errorf("it says to look for %q", look)
	}
}
