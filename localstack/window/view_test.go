package window_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/internal/sequence"
	"github.com/lambdaidem/toolkit/localstack/window"
)

// call sends a request and returns its response's status and body.
func call(t *testing.T, method, url, body string, header ...string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for pair := range slices.Chunk(header, 2) {
		if pair[0] == "Host" {
			req.Host = pair[1]
		}
		req.Header.Set(pair[0], pair[1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	defer resp.Body.Close() //nolint:errcheck // it is read to its end
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// do gives the page a command, which must succeed.
func do(t *testing.T, page, command, body string) {
	t.Helper()
	if status, text := call(t, http.MethodPost, page+command, body); status != http.StatusNoContent {
		t.Fatalf("POST %s: %d %s", command, status, text)
	}
}

// view is what a page has been sent.
type view struct {
	parties map[string]string // names by ID
	events  []sequence.Event
	state   window.State
	cleared int
	lastID  string
	all     bool // everything that there was at first has been sent
	resumed bool // the page knows parties from before
}

// lines returns the events as a screen reader reads them, in the order of time, each after
// the name of its record's state in brackets.
func (v *view) lines() []string {
	sorted := slices.Clone(v.events)
	slices.SortStableFunc(sorted, func(a, b sequence.Event) int { return int(a.At - b.At) })
	var all []string
	for _, e := range sorted {
		line := v.parties[e.From]
		if e.To != "" {
			line += " to " + v.parties[e.To]
		}
		line += ": " + e.Text
		if e.Lost {
			line += " (lost)"
		}
		if e.Record != nil {
			line += " [" + string(e.Record.State) + "]"
		}
		all = append(all, line)
	}
	return all
}

// until reads the page's events until what they show satisfies a condition.
func until(t *testing.T, page, lastID string, enough func(v *view) bool) *view {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it is left in the middle
	v := &view{parties: map[string]string{}, lastID: lastID, resumed: lastID != ""}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	name := ""
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			v.lastID = value
		case "event":
			name = value
		case "data":
			v.take(t, name, value)
			v.all = v.all || name == "state" // which comes last of what there is
			if v.all && enough(v) {
				return v
			}
		}
	}
	t.Fatalf("the page does not show enough: %v\n%s\n%+v", lines.Err(), strings.Join(v.lines(), "\n"), v.state)
	return nil
}

func (v *view) take(t *testing.T, name, data string) {
	t.Helper()
	into := any(nil)
	var p sequence.Party
	var e sequence.Event
	switch name {
	case "party":
		into = &p
	case "event":
		into = &e
	case "state":
		into = &v.state
	case "clear":
		v.events, v.cleared = nil, v.cleared+1
		return
	}
	if err := json.Unmarshal([]byte(data), into); err != nil {
		t.Fatalf("%s %s: %v", name, data, err)
	}
	switch name {
	case "party":
		v.parties[p.ID] = p.Name
	case "event":
		if !v.resumed && (v.parties[e.From] == "" || e.To != "" && v.parties[e.To] == "") {
			t.Errorf("an event names a party that is not known: %+v", e)
		}
		v.events = append(v.events, e)
	}
}

// idle holds when nothing is under way and something is to be looked for.
func idle(v *view) bool { return !v.state.Busy && v.state.Story == "" && v.state.Look != "" }

// expect compares lines with regular expressions, which must match some of them in this order.
func expect(t *testing.T, lines []string, want ...string) {
	t.Helper()
	rest := lines
	for _, each := range want {
		pattern := regexp.MustCompile(each)
		at := slices.IndexFunc(rest, pattern.MatchString)
		if at < 0 {
			t.Fatalf("no %q, in this place of:\n%s", each, strings.Join(lines, "\n"))
		}
		rest = rest[at+1:]
	}
}

// without fails if a line matches.
func without(t *testing.T, lines []string, unwanted string) {
	t.Helper()
	for _, line := range lines {
		if regexp.MustCompile(unwanted).MatchString(line) {
			t.Errorf("it should not say %q", line)
		}
	}
}

func matching(lines []string, pattern string) (n int) {
	for _, line := range lines {
		if regexp.MustCompile(pattern).MatchString(line) {
			n++
		}
	}
	return n
}
