package main

import (
	"strings"
	"testing"
	"time"
)

// correct returns a storm that audit accepts. Each wave has three requests. In the first wave one
// request runs the handler, one duplicate is refused and one receives a replay.
func correct() *storm {
	first := answer{Status: 201, Body: "paid"}
	replay := answer{Status: 201, Body: "paid", Replayed: true}
	refusal := answer{Status: 409, Body: "idempotency_in_progress", RetryAfter: "1"}
	return &storm{
		mode: modes[0], processes: 2, settings: settings{Requests: 3},
		during: []measured{
			{Runs: 1, MostCalls: 1, Answers: []answers{{first, 1}, {refusal, 1}}},
			{MostCalls: 1, Answers: []answers{{replay, 1}}},
		},
		after: []measured{{MostCalls: 1, Answers: []answers{{replay, 2}}}, {MostCalls: 1, Answers: []answers{{replay, 1}}}},
	}
}

func TestAudit_NamesWhatMustNotHappen(t *testing.T) {
	if err := correct().audit(); err != nil {
		t.Fatalf("audit finds fault with a correct storm: %v", err)
	}
	for want, spoil := range map[string]func(*storm){
		"ran 2 times":              func(s *storm) { s.after[1].Runs = 1 },
		"ran 0 times":              func(s *storm) { s.during[0].Runs = 0 },
		"2 answers are no replays": func(s *storm) { s.during[1].Answers[0].Replayed = false },
		"got {Status:201 Replayed:true Body:paid twice": func(s *storm) { s.during[1].Answers[0].Body = "paid twice" },
		"got {Status:503": func(s *storm) { s.during[1].Answers[0].Status = 503 },
		"got {Status:409 Replayed:false Body:idempotency_payload_mismatch": func(s *storm) { s.during[0].Answers[1].Body = "idempotency_payload_mismatch" },
		"RetryAfter: Err":     func(s *storm) { s.during[0].Answers[1].RetryAfter = "" },
		"RetryAfter:0 Err":    func(s *storm) { s.during[0].Answers[1].RetryAfter = "0" },
		"Err:panic":           func(s *storm) { s.during[1].Answers[0].Err = "panic" },
		"there are 2 answers": func(s *storm) { s.during[1].Answers = nil },
		"after the handler has finished, there are 4":                               func(s *storm) { s.after[1].Answers[0].Times = 2 },
		"after the handler has finished, 1 requests got {Status:201 Replayed:false": func(s *storm) { s.after[1].Answers[0].Replayed = false },
		"after the handler has finished, 1 requests got {Status:409":                func(s *storm) { s.after[1].Answers[0].answer = s.during[0].Answers[1].answer },
		"while the handler runs, 1 requests got {Status:409":                        func(s *storm) { s.mode = modes[1] }, // a mode that waits
		"while the handler runs, a duplicate needed 2":                              func(s *storm) { s.during[1].MostCalls = 2 },
		"after the handler has finished, a duplicate needed 2":                      func(s *storm) { s.after[0].MostCalls = 2 },
		"a duplicate needed 1 requests to DynamoDB; want at most 0":                 func(s *storm) { s.mode = modes[2] }, // a mode with a cache
		"sent 4 requests GetItem; want only PutItem":                                func(s *storm) { s.after[1].DuplicateCalls = map[string]int{"PutItem": 1, "GetItem": 4} },
		"a duplicate needed 7":                                                      func(s *storm) { s.mode = modes[1]; s.during[0].MostSoon = 7 },
	} {
		s := correct()
		spoil(s)
		if err := s.audit(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("audit returns %v; want an error with %q", err, want)
		}
	}
}

// A call counts in the second in which it is sent. With 1,000 units a second, DynamoDB allows 2 of
// 3 calls of 400 units.
func TestThrottled_CountsCallsBeyondTheLimitOfASecond(t *testing.T) {
	at := []time.Duration{0, 1, time.Second - 1, time.Second, 2*time.Second - 1, 5 * time.Second}
	for want, limit := range map[int]float64{0: 1200, 1: 1000, 6: 399} {
		if got := throttled(at, 400, limit); got != want {
			t.Errorf("with %v units a second, %d calls are throttled; want %d", limit, got, want)
		}
	}
	if got := throttled(at, 1, 1); got != 3 {
		t.Errorf("%d calls of one unit are throttled; want 3", got)
	}
}

func TestLargestShare(t *testing.T) {
	const ms = time.Millisecond
	largest, even := largestShare([]time.Duration{10 * ms, 11 * ms, 11*ms + 1, 13 * ms}, ms)
	if largest != 0.5 || even != 0.25 {
		t.Errorf("the largest share is %v, an even one %v; want 0.5 and 0.25", largest, even)
	}
	if largest, even = largestShare(nil, ms); largest != 0 || even != 0 {
		t.Errorf("without times, the shares are %v and %v", largest, even)
	}
}

// A call that is sent exactly 200 ms after the first one is within 200 ms of it.
func TestRequest_CountsCallsSoonAfterTheFirst(t *testing.T) {
	const ms = time.Millisecond
	r := request{calls: []call{{At: 5 * ms}, {At: 100 * ms}, {At: 205 * ms}, {At: 206 * ms}}}
	if got := r.callsWithin(200 * ms); got != 3 {
		t.Errorf("%d calls are within 200 ms; want 3", got)
	}
}

func TestTables_HaveEqualRowsAndWhatWasMeasured(t *testing.T) {
	s := *correct()
	s.units = units{write: 1, read: 1}
	s.during[0].Last, s.during[0].PeakMemory, s.during[0].MostOpen = 1500*time.Millisecond, 20<<20, 7
	s.during[0].DuplicateCalls = map[string]int{"PutItem": 3}
	slower := s
	slower.during = []measured{{Last: 9 * time.Second}}
	all := []repeated{{slower, s, s}}
	all[0].sort()
	text := markdown(all, flags{settings: s.settings, repeat: 3}, " (busy)", time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
	for _, want := range []string{
		"| rejecting | during | 2 | 1 | 1 | 1 | 1.50 | 0.00 | 1 |", "| rejecting | after | 2 | 0 | 3 | 0 | 0.00 | 0.00 | 1 |",
		"| rejecting | during | 2 | 1.5 s (1.5–9.0) | 20 MB | 7 | 0 | 0 |", "on 2 January 2026", "too (busy)", "3 requests", "3 times",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	for _, rows := range [][][]string{answersTable(all), costsTable(all)} {
		for _, row := range rows {
			if len(row) != len(rows[0]) {
				t.Errorf("row %q has %d cells; its head %q has %d", row, len(row), rows[0], len(rows[0]))
			}
		}
	}
}

func TestFlags(t *testing.T) {
	f, err := parseFlags([]string{"-requests", "50", "-processes", "1,2,50", "-timeout", "2s", "-sdk-client", "-write"})
	if err != nil || f.settings != (settings{Requests: 50, HandlerTakes: 200 * time.Millisecond, AttemptTimeout: 2 * time.Second, SDKClient: true}) ||
		len(f.processes) != 3 || f.repeat != 3 || !f.write {
		t.Errorf("flags are %+v, %v", f, err)
	}
	for _, args := range [][]string{{"-requests", "1"}, {"-processes", "0"}, {"-processes", "1,"}, {"-requests", "5", "-processes", "6"}, {"-repeat", "0"}, {"more"}, {"-unknown"}} {
		if f, err := parseFlags(args); err == nil {
			t.Errorf("%q was taken as %+v", args, f)
		}
	}
}
