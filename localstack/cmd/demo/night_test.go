package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/localstack/emulator"
)

// These are lines that functions/watch writes.
const (
	noneDead = `{"_aws":{"Timestamp":1,"CloudWatchMetrics":[{"Namespace":"Lambdaidem","Dimensions":[["service","function"]],"Metrics":[{"Name":"DeadLeases","Unit":"Count"},{"Name":"OldestDeadLease","Unit":"Milliseconds"}]}]},"service":"local","function":"WatchFunction","DeadLeases":0,"OldestDeadLease":2100}` + "\n"
	noRoute  = `{"_aws":{"Timestamp":1,"CloudWatchMetrics":[{"Namespace":"Lambdaidem","Dimensions":[["service","function","route"]],"Metrics":[{"Name":"DeadLeases","Unit":"Count"}]}]},"service":"local","function":"WatchFunction","route":"POST /transfers","DeadLeases":0}` + "\n"
	aRecord  = `{"level":"WARN","msg":"a lease is over","record":"lambdaidem#1","route":"POST /transfers","attempt":1,"held":true}` + "\n"
)

var (
	allQuiet = "START RequestId: 1\n" + `{"level":"INFO","msg":"no record"}` + "\n" + noneDead + noRoute
	oneDead  = aRecord + strings.ReplaceAll(noneDead+noRoute, `"DeadLeases":0`, `"DeadLeases":1`)
)

func TestO2_SightingIsWhatTheWatchWrote(t *testing.T) {
	found := sighting{told: true, dead: 1, byRoute: map[string]float64{"POST /transfers": 1}, named: []named{{"lambdaidem#1", "POST /transfers", 1, true}}}
	for name, test := range map[string]struct {
		log  string
		want sighting
		text string
	}{
		"nothing":  {"", sighting{byRoute: map[string]float64{}}, "no metrics"},
		"none":     {allQuiet, sighting{told: true, byRoute: map[string]float64{}}, "DeadLeases 0"},
		"one dead": {oneDead, found, "DeadLeases 1, 1 of POST /transfers; lambdaidem#1, attempt 1, held true"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := sightingIn([]byte(test.log))
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(sighting{})); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if got.String() != test.text {
				t.Errorf("it reads %q; want %q", got, test.text)
			}
		})
	}
	if _, err := sightingIn([]byte(strings.Replace(noneDead, `"Timestamp":1`, `"Timestamp":"x"`, 1))); err == nil {
		t.Error("metrics that CloudWatch would not take were taken")
	}
}

// watching returns a demo whose watch writes one of these logs in each run, in order, and repeats
// the last one. It also returns a pointer to the number of runs.
func watching(logs ...string) (*demo, *int) {
	p, _ := newTestPrinter(false)
	looks := 0
	d := &demo{out: p, watch: watch{func(_ context.Context, function string, _ []byte) (emulator.Result, error) {
		if function != "WatchFunction" {
			return emulator.Result{}, errors.New(function)
		}
		log := logs[min(looks, len(logs)-1)]
		looks++
		return emulator.Result{LogTail: []byte(log)}, nil
	}}}
	d.night.record.ID = "lambdaidem#1"
	return d, &looks
}

func TestO2_TheDemoWaitsForADeadLeaseAndChecksWhichItIs(t *testing.T) {
	for name, test := range map[string]struct {
		dead  int
		logs  []string
		looks int // 0: not checked, because the demo gives up only after its time limit
		wrong int
	}{
		"none":                {0, []string{allQuiet}, 1, 0},
		"one where none is":   {0, []string{oneDead}, 1, 1},
		"no metrics":          {0, []string{""}, 1, 1},
		"one, soon":           {1, []string{allQuiet, allQuiet, oneDead}, 3, 0},
		"one, never":          {1, []string{allQuiet}, 0, 2},
		"two":                 {1, []string{strings.Replace(oneDead, `"DeadLeases":1`, `"DeadLeases":2`, 1)}, 1, 1},
		"of another route":    {1, []string{strings.ReplaceAll(oneDead, "/transfers", "/payments")}, 1, 2},
		"another record":      {1, []string{strings.ReplaceAll(oneDead, "lambdaidem#1", "lambdaidem#2")}, 1, 1},
		"not held":            {1, []string{strings.ReplaceAll(oneDead, `"held":true`, `"held":false`)}, 1, 1},
		"named, not counted":  {0, []string{aRecord + allQuiet}, 1, 1},
		"counted, of no name": {1, []string{strings.Replace(oneDead, aRecord, "", 1)}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, looks := watching(test.logs...)
				if err := d.expectDead(t.Context(), test.dead); err != nil {
					t.Fatal(err)
				}
				if test.looks != 0 && *looks != test.looks || len(d.out.wrong) != test.wrong {
					t.Errorf("%d looks, and wrong: %q; want %d, and %d", *looks, d.out.wrong, test.looks, test.wrong)
				}
			})
		})
	}
}

func TestO2_AWatchThatFailsEndsTheDemo(t *testing.T) {
	d := &demo{watch: watch{func(context.Context, string, []byte) (emulator.Result, error) {
		return emulator.Result{FunctionError: "Unhandled", Payload: []byte(`{"errorMessage":"no table"}`)}, nil
	}}}
	if err := d.expectDead(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "no table") {
		t.Errorf("unhandled: %v", err)
	}
	d.watch.invoke = func(context.Context, string, []byte) (emulator.Result, error) {
		return emulator.Result{}, emulator.ErrClosed
	}
	if err := d.expectDead(t.Context(), 0); !errors.Is(err, emulator.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The wait ends with any answer except that an attempt is in progress.
func TestL6_ALeaseIsOverWhenNoAttemptIsSaidToBeUnderWay(t *testing.T) {
	for end, status := range map[string]int{`{"code":"idempotency_attempt_abandoned"}`: 409, `{"id":"tra_1"}`: 201, "": 500} {
		synctest.Test(t, func(t *testing.T) {
			sent := 0
			p, _ := newTestPrinter(false)
			d := &demo{out: p, client: &client{http: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				if sent++; sent > 3 {
					return nil, errors.New("it goes on and on")
				}
				if sent < 3 {
					return &http.Response{StatusCode: 409, Body: io.NopCloser(strings.NewReader(`{"code":"idempotency_in_progress"}`))}, nil
				}
				return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(end))}, nil
			})}}}
			a, err := d.whenLeaseIsOver(t.Context(), order("alice", "k", dinner))
			if err != nil || a.status != status || a.body != end || sent != 3 {
				t.Errorf("%v, %d %s after %d requests; want %d %s after 3", err, a.status, a.body, sent, status, end)
			}
		})
	}
}

func TestCommandLinesAreQuotedAsAShellTakesThem(t *testing.T) {
	for want, args := range map[string][]string{
		`--reason 'it'\''s'`:                    {"--reason", "it's"},
		`show lambdaidem#a_b-c`:                 {"show", "lambdaidem#a_b-c"},
		`--body '{"id":"p-1"}' --reason 'a b'`:  {"--body", `{"id":"p-1"}`, "--reason", "a b"},
		`--header 'X: '\''y'\''' --by '' --yes`: {"--header", "X: 'y'", "--by", "", "--yes"},
	} {
		if got := quoted(args); got != want {
			t.Errorf("%q is written %s; want %s", args, got, want)
		}
	}
}

func TestOperatorsCommandIsHeardToItsEnd(t *testing.T) {
	o := operator{binary: os.Args[0], env: append(slices.Clone(os.Environ()), mainVariable+"=1")}
	got, err := o.run(t.Context(), "fast")
	if err != nil || got.code != 2 || got.out != "" || !strings.Contains(got.errs, `got "fast"`) {
		t.Errorf("%v, %+v; want code 2 and the usage", err, got)
	}
	if got, err := o.run(t.Context(), "-h"); err != nil || got.code != 0 {
		t.Errorf("%v, %+v; want code 0", err, got)
	}
	if _, err := (operator{binary: os.Args[0] + "-none"}).run(t.Context(), "show"); err == nil || !strings.Contains(err.Error(), "run idem show") {
		t.Errorf("a command that is not there: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := o.run(ended, "-h"); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if got, err := (operator{binary: "/bin/sh"}).run(short, "-c", "exec sleep 60"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ended on its way: %+v, %v", got, err)
	}
}

func TestCommandIsShownWithWhatItSaidAndItsCode(t *testing.T) {
	p, text := newTestPrinter(false)
	p.command("idem show x")
	p.output(said{out: "a\nb\n", errs: "idem: refused\n", code: 4})
	p.output(said{out: strings.Repeat("x", 200) + "\n"})
	want := "   $ idem show x\n     a\n     b\n     idem: refused\n     exit code 4\n     " + strings.Repeat("x", 159) + "…\n"
	if text.String() != want {
		t.Errorf("it is shown as\n%s\nwant\n%s", text, want)
	}
}

func TestRefusalIsCheckedByStatusAndCode(t *testing.T) {
	for body, right := range map[string]bool{`{"code":"refused"}`: true, `{"code":"other"}`: false, "refused": false} {
		for _, status := range []int{409, 422} {
			p, _ := newTestPrinter(false)
			(&demo{out: p}).expectRefusal(answer{status: status, body: body}, 409, "refused")
			if got := len(p.wrong) == 0; got != (right && status == 409) {
				t.Errorf("%d %s is right: %t", status, body, got)
			}
		}
	}
}

func TestWithNothingFoundNothingIsSettled(t *testing.T) {
	p, _ := newTestPrinter(false)
	if err := (&demo{out: p}).settled(t.Context()); err != nil || len(p.wrong) != 1 {
		t.Errorf("%v, and wrong: %q; want a wrong answer", err, p.wrong)
	}
}

// The demo repeats the command until the database's clock has reached the lease's end, and prints
// only the last output.
func TestO2_TheOperatorLooksAgainUntilTheLeaseIsThere(t *testing.T) {
	seen := filepath.Join(t.TempDir(), "seen")
	p, text := newTestPrinter(false)
	d := &demo{out: p, operator: operator{binary: "/bin/sh"}}
	got, err := d.idemUntil(t.Context(), "held", "-c", "if [ -e "+seen+" ]; then echo held; else touch "+seen+"; echo none; fi")
	if err != nil || got.out != "held\n" || strings.Contains(text.String(), "     none") || strings.Count(text.String(), "     held\n") != 1 {
		t.Errorf("%v, %+v, shown as\n%s", err, got, text)
	}
}
