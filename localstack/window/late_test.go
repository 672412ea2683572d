package window_test

import (
	"regexp"
	"testing"
)

// What becomes of a write that the network holds up depends on the record, and so does what the
// page says. Two faults can strike the writes of one attempt.
func TestFaults_MeetInOneAttempt(t *testing.T) {
	_, page := running(t)
	for name, test := range map[string]struct {
		faults []string
		form   string
		lines  []string
		look   string
	}{
		"a late write to a held record counts": {
			[]string{"late"}, `{"sample":"transfer","policy":"hold","key":"meet-2"}`, []string{
				`to client: 503 idempotency_outcome_unknown`,
				`to client: 409 idempotency_attempt_abandoned`,
				`^world: the request that was held up arrives`,
				`^world to DynamoDB: TransactWriteItems: stores the answer .* \[completed\]$`,
				`done: the answer is stored; but nobody waits for this reply any more: the process has (given up|ended)`,
			}, `the client got a 503.*nobody had taken the record over.*carried the late write out`,
		},
		"a process dies while its write is on its way": {
			[]string{"late", "kill"}, payment("meet-3"), []string{
				`dies before it sends the write that stores the answer again$`,
				`is killed`,
				`takes the record over`,
				`to client: 201 Created$`,
				`^world to DynamoDB: TransactWriteItems: stores the answer`,
				`refused, because another attempt has the record now: nothing is written; but nobody waits for this reply any more: the process has ended`,
			}, `Then the process died, but the write that stores its answer was on its way.*another attempt had the record.*refuses it`,
		},
		"a process dies whose answer is stored": {
			[]string{"completion", "kill"}, payment("meet-4"), []string{
				`stores the answer .* \[completed\]$`,
				`the reply does not arrive`,
				`dies before it sends the write that stores the answer again\. It has never heard that the first try was carried out$`,
				`is killed`,
			}, `^The process died after its answer was stored`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			do(t, page, "/clear", "")
			for _, fault := range test.faults {
				do(t, page, "/fault/"+fault, "")
			}
			do(t, page, "/send", test.form)
			v := until(t, page, "", idle)
			expect(t, v.lines(), test.lines...)
			without(t, v.lines(), "before the write that stores the answer leaves it")
			if !regexp.MustCompile(test.look).MatchString(v.state.Look) {
				t.Errorf("it says to look for %q; want %q", v.state.Look, test.look)
			}
		})
	}
}
