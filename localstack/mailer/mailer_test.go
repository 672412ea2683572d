package mailer_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/localstack/mailer"
)

func start(t *testing.T) *mailer.Service {
	t.Helper()
	s, err := mailer.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// post sends an order for a mail. It returns status 0 if the connection was closed without an
// answer.
func post(t *testing.T, s *mailer.Service, key, reference string) (status int, body string) {
	t.Helper()
	order := fmt.Sprintf(`{"to":"alice","payment":"pay_1","amount":5,"currency":"EUR","reference":%q}`, reference)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/mails", strings.NewReader(order))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close() //nolint:errcheck // it is read to its end
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestKeyHasOneMailAndOneAnswer(t *testing.T) {
	s := start(t)
	for range 3 {
		if status, body := post(t, s, "k", "rent"); status != http.StatusCreated || body != `{"id":"mail_1"}` {
			t.Errorf("answer %d %s", status, body)
		}
	}
	want := mailer.Effect{Key: "k", To: "alice", Payment: "pay_1", Amount: 5, Calls: 3}
	if all := s.Effects(); len(all) != 1 || all["k"] != want || len(s.Misuses()) != 0 {
		t.Errorf("the effects are %+v, the misuses %q; want %+v alone", all, s.Misuses(), want)
	}
	if status, body := post(t, s, "other", "rent"); status != http.StatusCreated || body != `{"id":"mail_2"}` {
		t.Errorf("another key: %d %s; want a mail of its own", status, body)
	}
}

func TestReferenceTellsHowToBehave(t *testing.T) {
	for reference, want := range map[string]struct {
		statuses []int
		refused  bool
	}{
		"mail-fails=2":                           {[]int{503, 503, 201}, false},
		"rent mail-loses=2":                      {[]int{0, 0, 201}, false},
		"mail-refuses mail-fails=1":              {[]int{503, 422, 422}, true},
		"mail-fails=-1 mail-delay= mail-delay=x": {[]int{201}, false},
		"receipt-fails=1 fails=1 fail=1 refuse":  {[]int{201}, false}, // words without the prefix mail- are for other services
	} {
		s := start(t)
		for call, status := range want.statuses {
			if got, body := post(t, s, "k", reference); got != status {
				t.Errorf("%s, call %d: %d %s; want %d", reference, call+1, got, body, status)
			} else if got == http.StatusUnprocessableEntity && body != `{"reason":"nobody has this address"}` {
				t.Errorf("%s, call %d: %s gives no reason", reference, call+1, body)
			}
		}
		if all := s.Effects(); len(all) != 1 || all["k"].Refused != want.refused || all["k"].Calls != len(want.statuses) {
			t.Errorf("%s: the effects are %+v", reference, all)
		}
	}
}

func TestCallsCountThoseWithoutEffectToo(t *testing.T) {
	s := start(t)
	post(t, s, "k", "mail-fails=5")
	post(t, s, "k", "mail-fails=5")
	if calls := s.Calls(); len(s.Effects()) != 0 || len(calls) != 1 || calls["k"] != 2 {
		t.Errorf("the effects are %+v, the calls %v; want none of two calls", s.Effects(), calls)
	}
}

// The first answer comes 200 ms after the effect. A later call with the key has nothing left to
// wait for.
func TestSlowAnswerComesAfterTheEffect(t *testing.T) {
	s := start(t)
	for _, least := range []time.Duration{200 * time.Millisecond, 0} {
		began := time.Now()
		status, _ := post(t, s, "k", "mail-delay=200")
		if took := time.Since(began); status != http.StatusCreated || took < least || least == 0 && took >= 200*time.Millisecond {
			t.Errorf("%d after %v; want 201 after %v", status, took, least)
		}
	}
}

func TestMisuseIsToldAndSendsNothing(t *testing.T) {
	s := start(t)
	if status, _ := post(t, s, "", "rent"); status != http.StatusBadRequest {
		t.Errorf("without a key: %d; want 400", status)
	}
	post(t, s, "k", "rent")
	if status, _ := post(t, s, "k", "gift"); status != http.StatusConflict {
		t.Errorf("a key for two mails: %d; want 409", status)
	}
	if len(s.Misuses()) != 2 || len(s.Effects()) != 1 {
		t.Errorf("misuses %q, effects %+v", s.Misuses(), s.Effects())
	}
}
