package watch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/emf"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)

var errNoTTL = errors.New("not asked")

// found is the content of a metric document.
type found struct {
	route                    string
	count, oldest            int64
	held, oldestHeld, recent int64
}

// watching returns a watch that finds the given leases, with buffers for its metrics and log.
func watching(all func(context.Context) leases) (w watch, written, logged *bytes.Buffer) {
	written, logged = &bytes.Buffer{}, &bytes.Buffer{}
	return watch{
		leases: all, ttl: func(context.Context) (bool, error) { return false, errNoTTL }, routes: []string{"POST /payments", "notification"}, clock: func() time.Time { return now },
		metrics: emf.New(func(o *emf.Options) {
			o.Service, o.Function, o.Writer, o.Clock = "payments", "watch", written, func() time.Time { return now }
		}),
		log: slog.New(slog.NewJSONHandler(logged, nil)),
	}, written, logged
}

func documents(t *testing.T, written *bytes.Buffer) []found {
	t.Helper()
	var all []found
	for line := range strings.Lines(written.String()) {
		var doc struct {
			Service, Function, Route                                                     string
			DeadLeases, OldestDeadLease, HeldRecords, OldestHeldRecord, RecentDeadLeases int64
		}
		if err := json.Unmarshal([]byte(line), &doc); err != nil || doc.Service != "payments" || doc.Function != "watch" {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, found{doc.Route, doc.DeadLeases, doc.OldestDeadLease, doc.HeldRecords, doc.OldestHeldRecord, doc.RecentDeadLeases})
	}
	return all
}

// dead returns the record of an attempt whose lease ended this long ago.
func dead(scope string, ago time.Duration) lambdaidem.Record {
	return lambdaidem.Record{ID: "lambdaidem#" + scope, State: lambdaidem.InProgress, Attempt: 2, Scope: scope, LeaseEnd: now.Add(-ago), Expires: now.Add(time.Hour),
		Invocation: "6bc28136-xmpl"}
}

// held returns such a record of an attempt under policy Hold. It does not expire.
func held(scope string, ago time.Duration) lambdaidem.Record {
	rec := dead(scope, ago)
	rec.Expires = time.Time{}
	return rec
}

// step is one step of an iteration over leases: a record or an error.
type step struct {
	rec lambdaidem.Record
	err error
}

func these(steps ...step) func(context.Context) leases {
	return func(context.Context) leases {
		return func(yield func(lambdaidem.Record, error) bool) {
			for _, s := range steps {
				if !yield(s.rec, s.err) {
					return
				}
			}
		}
	}
}

// The metrics have the count and the age of the oldest lease, in total and by route, including
// zeros.
func TestO2_WhatIsFoundIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		found []step
		want  []found
	}{
		"none": {nil, []found{{}, {route: "POST /payments"}, {route: "notification"}}},
		"a dead lease beside a held record": {[]step{{rec: dead("payments POST /payments alice", time.Minute)}, {rec: held("payments POST /payments bob", 2*time.Hour)}, {rec: held("notifications message notification ", time.Second)}},
			[]found{{"", 1, 60_000, 2, 7200_000, 1}, {"POST /payments", 1, 60_000, 1, 7200_000, 1}, {"notification", 0, 0, 1, 1000, 0}}},
		"one": {[]step{{rec: dead("payments POST /payments alice", 1500*time.Millisecond)}}, []found{{"", 1, 1500, 0, 0, 1}, {"POST /payments", 1, 1500, 0, 0, 1}, {route: "notification"}}},
		"some": {[]step{
			{rec: dead("payments POST /payments alice", time.Minute)}, {rec: dead("payments POST /payments bob", time.Hour)}, {rec: dead("payments POST /payments carol", time.Second)},
			{rec: dead("notifications message notification ", 2*time.Hour)}, {rec: dead("payments POST /payments/secret alice", time.Second)},
		}, []found{{"", 5, 7200_000, 0, 0, 3}, {"(none)", 1, 1000, 0, 0, 1}, {"POST /payments", 3, 3600_000, 0, 0, 2}, {"notification", 1, 7200_000, 0, 0, 0}}},
		"one that can't be read": {[]step{
			{lambdaidem.Record{ID: "lambdaidem#damaged"}, &lambdaidem.StoreError{Reason: lambdaidem.ReasonForeign}},
			{rec: dead("payments POST /payments alice", time.Second)},
		}, []found{{"", 1, 1000, 0, 0, 1}, {"POST /payments", 1, 1000, 0, 0, 1}, {route: "notification"}}},
	} {
		t.Run(name, func(t *testing.T) {
			w, written, logged := watching(these(c.found...))
			if err := w.look(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, documents(t, written), cmp.AllowUnexported(found{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for _, s := range c.found {
				if !strings.Contains(logged.String(), `"record":"`+s.rec.ID+`"`) {
					t.Errorf("%s is not in the log:\n%s", s.rec.ID, logged)
				}
			}
		})
	}
}

// A log line identifies the record for an operator, and has nothing that a client chose.
func TestO2_TheLogNamesTheRecords(t *testing.T) {
	var many []step
	for i := range 100 {
		many = append(many, step{rec: dead(fmt.Sprint("payments POST /payments/secret-", i, " alice"), time.Hour)})
		many[i].rec.ID = fmt.Sprint("lambdaidem#", i)
	}
	many[3].rec.Expires = time.Time{}
	w, written, logged := watching(these(many...))
	if err := w.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(logged.String()), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, errNoTTL.Error()) })
	if len(lines) != named || documents(t, written)[0].count != 99 || documents(t, written)[0].held != 1 {
		t.Errorf("%d lines of 100 leases, and the metrics %s", len(lines), written)
	}
	if strings.Contains(logged.String(), "secret") || strings.Contains(logged.String(), "alice") {
		t.Errorf("the log says what a client chose:\n%s", lines[0])
	}
	for i, line := range lines {
		if !strings.Contains(line, fmt.Sprintf(`"record":"lambdaidem#%d"`, i)) || !strings.Contains(line, fmt.Sprintf(`"held":%v`, i == 3)) ||
			!strings.Contains(line, `"attempt":2`) || !strings.Contains(line, `"invocation":"6bc28136-xmpl"`) || !strings.Contains(line, `"lease_ended":"2026-01-02T02:04:05.678Z"`) {
			t.Errorf("line %d is %s", i, line)
		}
	}
}

// If the query fails, look writes no metrics, because every number would be too small.
func TestO2_ALookThatFailsWritesNoMetrics(t *testing.T) {
	throttled := &lambdaidem.StoreError{Reason: lambdaidem.ReasonThrottled}
	for _, steps := range [][]step{{{err: throttled}}, {{rec: dead("payments POST /payments alice", time.Hour)}, {err: throttled}}} {
		w, written, _ := watching(these(steps...))
		if err := w.look(t.Context()); !errors.Is(err, throttled) || written.Len() > 0 {
			t.Errorf("%v, and wrote %q", err, written)
		}
	}
}

// If the time runs out, look writes what it has found so far, unless that is nothing.
func TestO2_ALookEndsBeforeItsInvocation(t *testing.T) {
	for _, first := range [][]step{{{rec: dead("payments POST /payments alice", time.Hour)}}, nil} {
		w, written, logged := watching(func(ctx context.Context) leases {
			return func(yield func(lambdaidem.Record, error) bool) {
				for _, s := range first {
					yield(s.rec, s.err)
				}
				end, _ := ctx.Deadline()
				if left := time.Until(end); left > 0 {
					t.Errorf("it had %v", left)
				}
				<-ctx.Done()
				yield(lambdaidem.Record{}, ctx.Err())
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), reserve)
		err := w.look(ctx)
		alive := ctx.Err() == nil
		cancel()
		if first == nil {
			if !errors.Is(err, context.DeadlineExceeded) || written.Len() > 0 {
				t.Errorf("of a look that found nothing yet: %v, and wrote %q", err, written)
			}
			continue
		}
		if err != nil || !alive || !strings.Contains(logged.String(), "no time to find all") {
			t.Errorf("%v, in time %v, logged\n%s", err, alive, logged)
		}
		if diff := cmp.Diff([]found{{"", 1, 3600_000, 0, 0, 0}, {"POST /payments", 1, 3600_000, 0, 0, 0}}, documents(t, written), cmp.AllowUnexported(found{})); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

// routeOf returns one of the watched routes or "".
func TestO1_RoutesAreOfFew(t *testing.T) {
	w := watch{routes: []string{"POST /payments/{id}", "notification", "charge", "arn:aws:sqs:eu-west-1:111122223333:orders"}}
	for scope, want := range map[string]string{
		"shop POST /payments/{id} alice":                          "POST /payments/{id}",
		"shop POST /payments/{id} alice tenant":                   "POST /payments/{id}",
		"shop POST /payments/{id} ":                               "POST /payments/{id}",
		"shop PUT /payments/{id} alice":                           "",
		"shop POST /payments/17 alice":                            "",
		"shop message notification ":                              "notification",
		"shop message arn:aws:sqs:eu-west-1:111122223333:orders ": "arn:aws:sqs:eu-west-1:111122223333:orders",
		"shop invoke charge alice":                                "charge",
		"shop  charge alice":                                      "charge",
		"shop POST charge alice":                                  "",
		"":                                                        "",
		"shop message notification":                               "",
		"another tool's text":                                     "",
		"shop POST /payments/{id}":                                "",
		"shop message " + strings.Repeat("x", 300) + " ":          "",
		"  notification ":                                         "notification",
	} {
		if got := w.routeOf(scope); got != want {
			t.Errorf("%q is of %q; want %q", scope, got, want)
		}
	}
}

func FuzzO1_RoutesAreOfFew(f *testing.F) {
	w := watch{routes: []string{"POST /payments", "charge"}}
	f.Add("shop POST /payments alice")
	f.Add("shop invoke charge ")
	f.Fuzz(func(t *testing.T, scope string) {
		if got := w.routeOf(scope); got != "" && (!slices.Contains(w.routes, got) || !strings.Contains(scope, strings.TrimPrefix(got, "POST "))) {
			t.Errorf("%q is of %q", scope, got)
		}
	})
}

// Every call of look writes the metric of the table's TTL. If DynamoDB does not say whether TTL
// is on, look writes no such metric, which the alarm treats as a failure, and continues.
func TestO2_TheTablesTTLIsTold(t *testing.T) {
	for want, ttl := range map[string]func(context.Context) (bool, error){
		`"TTLDisabled":0`: func(context.Context) (bool, error) { return true, nil },
		`"TTLDisabled":1`: func(context.Context) (bool, error) { return false, nil },
		"":                func(context.Context) (bool, error) { return false, errNoTTL },
	} {
		w, written, logged := watching(these())
		w.ttl = ttl
		if err := w.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(written.String(), want) || strings.Contains(written.String(), "TTLDisabled") != (want != "") || !strings.Contains(written.String(), `"DeadLeases":0`) {
			t.Errorf("want %q; it wrote %s", want, written)
		}
		if (logged.Len() > 0) != (want != `"TTLDisabled":0`) {
			t.Errorf("want %q; it logged %s", want, logged)
		}
	}
}
