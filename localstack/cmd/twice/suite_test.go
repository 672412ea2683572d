package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestAnAPIThatBehavesPasses(t *testing.T) {
	for name, to := range map[string]string{"a transfer to nobody": "", "a transfer to bob": "bob"} {
		t.Run(name, func(t *testing.T) {
			b := newBank()
			s, told, err := runOver(t, b, to)
			if err != nil {
				t.Fatalf("%v\n%s", err, told)
			}
			if s.paid != b.spent.Load() || s.paid == 0 {
				t.Errorf("it says that %d was paid; it was %d", s.paid, b.spent.Load())
			}
			if last := fmt.Sprintf("\nrequests=%d paid=%d\n", s.client.sent.Load(), s.paid); !strings.HasSuffix(told, last) {
				t.Errorf("the report is\n%s\nwant it to end with %s", told, last)
			}
		})
	}
}

// The suite sends each kind of request of the samples at least twice with one key.
func TestEveryKindIsSentTwice(t *testing.T) {
	type sent struct{ route, key string }
	times := map[sent]int{}
	b := newBank()
	_, _, err := runOver(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !atOnce(r) { // the crowd's requests are not counted here
			times[sent{r.Method + " " + strings.Split(r.URL.Path, "/")[1] + " " + r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:], r.Header.Get("Idempotency-Key")}]++
		}
		b.ServeHTTP(w, r)
	}), "bob")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []sent{
		{"POST payments payments", "run-1-payment"},
		{"POST payments payments", "run-1-refused-payment"},
		{"POST payments refunds", "run-1-refund"},
		{"POST transfers transfers", "run-1-transfer"},
	} {
		if times[want] < 2 {
			t.Errorf("%v was sent %d times: %v", want, times[want], times)
		}
	}
}

func TestL8_ConflictsThatAreProvokedAreCounted(t *testing.T) {
	b := newBank()
	b.meeting = newMeeting()
	_, told, err := runOver(t, b, "")
	if err != nil {
		t.Fatalf("%v\n%s", err, told)
	}
	if want := "1 ran, 0 replays, 4 conflicts\n"; !strings.Contains(told, want) {
		t.Errorf("the report is\n%s\nwant %q in it", told, want)
	}
}

// rowOf returns the row with this name.
func rowOf(t *testing.T, s *suite, what string) row {
	t.Helper()
	for _, r := range s.rows {
		if r.what == what {
			return r
		}
	}
	t.Fatalf("there is no row %q", what)
	return row{}
}

func setBody(a *httptest.ResponseRecorder, body string) { a.Body = bytes.NewBufferString(body) }

func isReplay(a *httptest.ResponseRecorder) bool { return a.Header().Get(replayMark) != "" }

// faults has faults that an API could have, and for each the row that must report it and a part
// of the report.
var faults = map[string]struct {
	fault change
	row   string
	says  string
}{
	"R1 a replay of another status": {func(_ *http.Request, a *httptest.ResponseRecorder) {
		if isReplay(a) && a.Code == http.StatusCreated {
			a.Code = http.StatusOK
		}
	}, "payment, again", "status 200, the first answer 201"},
	"R1 a replay of another body": {func(_ *http.Request, a *httptest.ResponseRecorder) {
		if isReplay(a) {
			setBody(a, "{}")
		}
	}, "refund, again", `the body "{}"`},
	"R1 a replay without a header": {func(_ *http.Request, a *httptest.ResponseRecorder) {
		if isReplay(a) {
			a.Header().Del("Location")
		}
	}, "payment, again", "Location []"},
	"R1 a replay with a header more": {func(_ *http.Request, a *httptest.ResponseRecorder) {
		if isReplay(a) {
			a.Header().Set("X-New", "1")
		}
	}, "refused payment, again", `X-New ["1"]`},
	"R2 a replay without its mark": {func(_ *http.Request, a *httptest.ResponseRecorder) {
		a.Header().Del(replayMark)
	}, "payment, again", "X-Idempotency-Replayed []"},
	"R2 a mark on the first answer": {func(_ *http.Request, a *httptest.ResponseRecorder) {
		if a.Code == http.StatusCreated {
			a.Header().Set(replayMark, "true")
		}
	}, "payment", "is no replay"},
	"R2 another mark": {func(_ *http.Request, a *httptest.ResponseRecorder) {
		if isReplay(a) {
			a.Header().Set(replayMark, "false")
		}
	}, "payment, again", `["false"], not "true"`},
	"X1 a refusal that is none": {func(_ *http.Request, a *httptest.ResponseRecorder) {
		if a.Code == http.StatusNotFound {
			a.Code = http.StatusCreated
		}
	}, "refused payment", "the status is 201, not 404"},
	"F5 a mismatch that is a replay": {func(_ *http.Request, a *httptest.ResponseRecorder) {
		if a.Code == http.StatusUnprocessableEntity {
			a.Code = http.StatusCreated
		}
	}, "payment, other payload", "the status is 201, not 422"},
	"F5 another code": {func(_ *http.Request, a *httptest.ResponseRecorder) {
		if a.Code == http.StatusUnprocessableEntity {
			setBody(a, `{"code":"other"}`)
		}
	}, "refund, other payload", `the code is "other"`},
	"F5 no problem document": {func(_ *http.Request, a *httptest.ResponseRecorder) {
		if a.Code == http.StatusUnprocessableEntity {
			a.Header().Set("Content-Type", "application/json")
		}
	}, "refund, other payload", `the code is ""`},
	"F3 other words are another request": {func(r *http.Request, a *httptest.ResponseRecorder) {
		if body, _ := io.ReadAll(r.Body); strings.HasPrefix(string(body), "{ ") && isReplay(a) {
			a.Code = http.StatusUnprocessableEntity
		}
	}, "refused transfer, in other words", "status 422"},
	"K3 a key is not asked for": {func(r *http.Request, a *httptest.ResponseRecorder) {
		if r.Method == http.MethodPost && r.Header.Get("Idempotency-Key") == "" {
			a.Code = http.StatusCreated
		}
	}, "payment, no key", "the status is 201, not 400"},
	"K1 a list is a key": {func(r *http.Request, a *httptest.ResponseRecorder) {
		if strings.Contains(r.Header.Get("Idempotency-Key"), ", ") {
			a.Code = http.StatusCreated
		}
	}, "payment, two keys in one", "the status is 201, not 400"},
	"K4 a GET that replays": {func(r *http.Request, a *httptest.ResponseRecorder) {
		if r.Method == http.MethodGet {
			a.Header().Set(replayMark, "true")
		}
	}, "GET of the payment, again", "is no replay"},
	"G3 one answer for two keys": {func(r *http.Request, a *httptest.ResponseRecorder) {
		if r.URL.Path == "/payments" && a.Code == http.StatusCreated {
			setBody(a, `{"id":"the same"}`)
		}
	}, "payment, another key", "the body of the first key's answer"},
	"G3 several that ran": {func(r *http.Request, a *httptest.ResponseRecorder) {
		if atOnce(r) {
			a.Code = http.StatusCreated
			a.Header().Del(replayMark)
		}
	}, "payment, 5 times at once", "5 handlers answered, not 1"},
	"L8 a server error at once": {func(r *http.Request, a *httptest.ResponseRecorder) {
		if atOnce(r) && !isReplay(a) {
			a.Code = http.StatusInternalServerError
		}
	}, "payment, 5 times at once", "the status is 500"},
	"L8 at once, another replay": {func(r *http.Request, a *httptest.ResponseRecorder) {
		if atOnce(r) && isReplay(a) {
			a.Header().Set("X-Of", r.RemoteAddr)
		}
	}, "payment at once, afterwards", "X-Of"},
	"L8 a conflict of another kind": {func(r *http.Request, a *httptest.ResponseRecorder) {
		if atOnce(r) {
			a.Code = http.StatusConflict
			setBody(a, `{"code":"other"}`)
		}
	}, "payment, 5 times at once", "the status is 409"},
	"F2 a stranger is let in": {func(_ *http.Request, a *httptest.ResponseRecorder) {
		if a.Code == http.StatusUnauthorized {
			a.Code = http.StatusCreated
		}
	}, "payment, no token", "the status is 201, not 401"},
	"no Location": {func(_ *http.Request, a *httptest.ResponseRecorder) {
		a.Header().Del("Location")
	}, "refund", "nothing to refund"},
}

func TestEachFaultIsNoticedInItsRow(t *testing.T) {
	for name, tt := range faults {
		t.Run(name, func(t *testing.T) {
			s, told, err := runOver(t, changed(newBank(), tt.fault), "")
			if err == nil || !strings.Contains(err.Error(), "are not as expected") {
				t.Fatalf("the error is %v; want one\n%s", err, told)
			}
			if r := rowOf(t, s, tt.row); !strings.Contains(strings.Join(r.wrong, "\n"), tt.says) {
				t.Errorf("the row %q says %q; want %q", tt.row, r.wrong, tt.says)
			}
			if !strings.Contains(told, "WRONG: "+tt.row+": ") || !strings.Contains(told, "\nWRONG  ") {
				t.Errorf("the report does not tell:\n%s", told)
			}
		})
	}
}

// A 409 without Retry-After is wrong, because the client does not learn when to retry.
func TestL8_ConflictWithoutRetryAfterIsWrong(t *testing.T) {
	b := newBank()
	b.meeting = newMeeting()
	bare := changed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &seenWriter{ResponseWriter: w, status: http.StatusOK}
		b.ServeHTTP(seen, r)
	}), func(_ *http.Request, a *httptest.ResponseRecorder) { a.Header().Del("Retry-After") })
	s, _, err := runOver(t, bare, "")
	if r := rowOf(t, s, "payment, 5 times at once"); err == nil || len(r.wrong) != 4 || r.wrong[0] != "a 409 has no Retry-After" {
		t.Errorf("error %v, wrong %q; want four 409s without Retry-After", err, r.wrong)
	}
}

// If the requests of the crowd are handled one after the other, all but the first are replays,
// and each replay is compared.
func TestG3_EachReplayOfTheCrowdIsCompared(t *testing.T) {
	var one sync.Mutex
	replays := 0
	odd := changed(newBank(), func(r *http.Request, a *httptest.ResponseRecorder) {
		if atOnce(r) && isReplay(a) {
			if replays++; replays == 2 {
				setBody(a, "{}")
			}
		}
	})
	s, told, err := runOver(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one.Lock()
		defer one.Unlock()
		odd.ServeHTTP(w, r)
	}), "")
	r := rowOf(t, s, "payment, 5 times at once")
	if err == nil || len(r.wrong) != 2 || !strings.Contains(r.wrong[0], `the body "{}"`) {
		t.Errorf("error %v, wrong %q; want the body and the length of the one odd replay", err, r.wrong)
	}
	if want := "1 ran, 4 replays, 0 conflicts (none was provoked)"; r.got != want {
		t.Errorf("it came to %q; want %q\n%s", r.got, want, told)
	}
}

// A faulty API may handle a request twice but mark the second answer as a replay. It then moves
// money that the report does not count. The script detects that by the balance of the account.
func TestPaidCountsWhatTheAnswersSay(t *testing.T) {
	b := newBank()
	s, _, err := runOver(t, changed(b, func(r *http.Request, a *httptest.ResponseRecorder) {
		if isReplay(a) && a.Code == http.StatusCreated && r.URL.Path == "/payments" {
			b.spent.Add(1250)
		}
	}), "")
	if err != nil {
		t.Fatal(err)
	}
	if s.paid >= b.spent.Load() {
		t.Errorf("paid=%d, and the account has %d less: want less in the report", s.paid, b.spent.Load())
	}
}

func TestAnAPIThatIsGoneIsWrongInEveryRow(t *testing.T) {
	server := httptest.NewServer(newBank())
	server.Close()
	s := &suite{client: newClient(server.URL, token), keys: "run-1"}
	s.run(t.Context())
	for _, r := range s.rows {
		if len(r.wrong) == 0 {
			t.Errorf("the row %q is right: %q", r.what, r.got)
		}
	}
	if r := rowOf(t, s, "payment, again"); len(r.wrong) != 1 || !strings.Contains(r.wrong[0], "/payments") {
		t.Errorf("the row %q says %q; want the error alone", r.what, r.wrong)
	}
	if err := report(io.Discard, s); err == nil {
		t.Error("there is no error")
	}
}

// If the transport repeated a request by itself, the suite would not notice that the first answer
// was lost.
func TestTheTransportRepeatsNothingByItself(t *testing.T) {
	var arrived atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		if arrived.Add(1) > 1 {
			panic(http.ErrAbortHandler) // close a connection that was used before
		}
	}))
	t.Cleanup(server.Close)
	c := newClient(server.URL, token)
	for range 2 {
		c.send(t.Context(), request{path: "/payments", key: "key-1", body: payment.body})
	}
	if arrived.Load() != 2 || c.sent.Load() != 2 {
		t.Errorf("%d requests arrived, %d are counted; want 2", arrived.Load(), c.sent.Load())
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestReportThatCantBeWrittenIsAnError(t *testing.T) {
	s := &suite{client: newClient("http://127.0.0.1", token)}
	if err := report(fullDisk{}, s); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("the error is %v; want disk full", err)
	}
}
