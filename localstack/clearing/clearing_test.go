package clearing_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/localstack/clearing"
)

// client is a client for the service of one test.
type client struct{ *clearing.Service }

func start(t *testing.T) client {
	t.Helper()
	s, err := clearing.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return client{s}
}

// clear sends an order. It returns status 0 if the connection was closed without an answer.
func (c client) clear(t *testing.T, key, reference string) (status int, body string) {
	t.Helper()
	order := fmt.Sprintf(`{"transfer":"tra_1","amount":5,"currency":"EUR","reference":%q}`, reference)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.URL()+"/clearings", strings.NewReader(order))
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

func TestKeyHasOneEffectAndOneAnswer(t *testing.T) {
	c := start(t)
	for range 3 {
		if status, body := c.clear(t, "k", "rent"); status != http.StatusCreated || body != `{"id":"clr_1"}` {
			t.Errorf("answer %d %s", status, body)
		}
	}
	want := clearing.Effect{Key: "k", Transfer: "tra_1", Amount: 5, Calls: 3}
	if all := c.Effects(); len(all) != 1 || all["k"] != want || len(c.Misuses()) != 0 {
		t.Errorf("the effects are %+v, the misuses %q; want %+v alone", all, c.Misuses(), want)
	}
	if status, _ := c.clear(t, "other", "rent"); status != http.StatusCreated || len(c.Effects()) != 2 {
		t.Errorf("another key: %d, %d effects; want 201 and two", status, len(c.Effects()))
	}
}

func TestReferenceTellsHowToBehave(t *testing.T) {
	for reference, want := range map[string]struct {
		statuses []int
		refused  bool
	}{
		"fail=2":         {[]int{503, 503, 201}, false},
		"rent lose=1":    {[]int{0, 201}, false},
		"refuse fail=1":  {[]int{503, 422, 422}, true},
		"fail=-1 delay=": {[]int{201}, false},
	} {
		c := start(t)
		for call, status := range want.statuses {
			if got, body := c.clear(t, "k", reference); got != status {
				t.Errorf("%s, call %d: %d %s; want %d", reference, call+1, got, body, status)
			}
		}
		if all := c.Effects(); len(all) != 1 || all["k"].Refused != want.refused || all["k"].Calls != len(want.statuses) {
			t.Errorf("%s: the effects are %+v", reference, all)
		}
	}
}

func TestSlowAnswerComesAfterTheEffect(t *testing.T) {
	c := start(t)
	began := time.Now()
	if status, _ := c.clear(t, "k", "delay=200"); status != http.StatusCreated || time.Since(began) < 200*time.Millisecond {
		t.Errorf("%d after %v; want 201 after 200 ms", status, time.Since(began))
	}
	began = time.Now()
	if c.clear(t, "k", "delay=200"); time.Since(began) >= 200*time.Millisecond {
		t.Errorf("a call after that took %v; it has nothing to wait for", time.Since(began))
	}
}

func TestMisuseIsToldAndHasNoEffect(t *testing.T) {
	c := start(t)
	if status, _ := c.clear(t, "", "rent"); status != http.StatusBadRequest {
		t.Errorf("without a key: %d; want 400", status)
	}
	c.clear(t, "k", "rent")
	if status, _ := c.clear(t, "k", "gift"); status != http.StatusConflict {
		t.Errorf("a key for two orders: %d; want 409", status)
	}
	if len(c.Misuses()) != 2 || len(c.Effects()) != 1 {
		t.Errorf("misuses %q, effects %+v", c.Misuses(), c.Effects())
	}
}

// Whoever watches the service learns what each call did.
func TestOnCall_SaysWhatTheServiceDoes(t *testing.T) {
	c := start(t)
	var did []string
	c.OnCall(func(transfer, does string, effect bool) {
		did = append(did, fmt.Sprint(transfer, " ", does, " ", effect))
	})
	c.clear(t, "k", "fail=1")
	c.clear(t, "k", "fail=1")
	c.clear(t, "k", "fail=1")
	c.clear(t, "l", "refuse")
	c.clear(t, "k", "another order, which is a misuse")
	for i, want := range []string{"is out of order, and does nothing false", "can't be undone true", "does nothing false", "refuses the transfer, for good false"} {
		if i >= len(did) || !strings.HasPrefix(did[i], "tra_1 ") || !strings.HasSuffix(did[i], want) {
			t.Fatalf("it tells %q; want %q at %d", did, want, i)
		}
	}
	if len(did) != 4 {
		t.Errorf("it tells %q", did)
	}
}
