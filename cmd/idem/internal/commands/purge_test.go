package commands

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

func TestO2_PurgeByScope(t *testing.T) {
	d := openDesk(t)
	d.pay(d.guard, "a", paid)
	d.pay(d.guard, "b", paid)
	d.pay(d.guard, "dead", died)
	ok := func(context.Context) (string, error) { return "x", nil }
	_, _ = lambdaidem.Do(t.Context(), d.guard, lambdaidem.Call{Operation: "charge it", Key: "k", Principal: "carol"}, ok)
	_, _ = lambdaidem.Do(t.Context(), d.guard.With(func(o *lambdaidem.Options) { o.Namespace = "other" }), lambdaidem.Call{Operation: "charge it", Key: "k"}, ok)
	for _, c := range []struct {
		flags   []string
		records int
	}{
		{[]string{"--route", "POST /payments/{id}"}, 2},
		{[]string{"--route", "PUT /payments/{id}"}, 0},
		{[]string{"--route", "/payments/{id}"}, 2},
		{[]string{"--route", "charge it"}, 2},
		{[]string{"--namespace", "shop", "--route", "charge it"}, 1},
		{[]string{"--caller", "jwt:https://issuer|bob"}, 2},
		{[]string{"--caller", "carol"}, 1},
		{[]string{"--tenant", "t"}, 0},
		{[]string{"--namespace", "shop"}, 3},
		{[]string{"--all"}, 4},
		{[]string{"--all", "--older-than", "5m"}, 4},
		{[]string{"--older-than", "1d"}, 0},
		{[]string{"--older-than", "5m", "--namespace", "other"}, 1},
		{[]string{"--since", d.view("a").CompletedAt.Format(time.RFC3339)}, 4},
		{[]string{"--since", d.view("a").CompletedAt.Add(time.Minute).Format(time.RFC3339)}, 0},
		{[]string{"--all", "--since", "2026-01-01T00:00:00+02:00", "--older-than", "1d"}, 0},
	} {
		var v purgeView
		d.idem(append([]string{"purge", "--dry-run", "-o", "json"}, c.flags...)...).want(t, exitDone).into(t, &v)
		if v.Matched != c.records || v.Purged != 0 || !v.DryRun {
			t.Errorf("%q: %+v; want %d matched", c.flags, v, c.records)
		}
	}
	d.idem("purge", "--caller", "jwt:https://issuer|bob", "--reason", "erasure request 7", "--yes").
		want(t, exitDone, "2 records erased", "1 is in progress, and was left")
	d.runs = 0
	if got := d.pay(d.guard, "a", paid); got.StatusCode != 500 || !strings.Contains(got.Body, string(lambdaidem.ErrAnswerUnavailable)) || d.runs > 0 {
		t.Errorf("a retry got %+v after %d runs", got, d.runs)
	}
	if v := d.view("a"); v.Answer.Failure == nil || v.Operations[0].What != "erased" || v.Operations[0].Reason != "erasure request 7" {
		t.Errorf("it is shown as %+v", v)
	}
	d.idem("purge", "--all", "--reason", "r", "--yes").want(t, exitDone, "2 records erased", "2 had no answer to erase")
	d.typing("forget\n", "purge", "--namespace", "shop", "--forget", "--reason", "r").want(t, exitDone, "3 records forgotten, as of 15m2s from now, or as of an earlier expiry.\n", "WARNING: --forget lets records expire, in 15m2s.")
	d.clock = time.Now().Add(lambdaidem.MinTTL + 5*time.Second)
	if got := d.pay(d.guard, "a", paid); got.StatusCode != 201 || d.runs != 1 {
		t.Errorf("a retry of what was forgotten got %+v after %d runs", got, d.runs)
	}
}

// Two tenants have a caller of the same name. Only the ids of their records say whose they are. If a
// purge for one tenant forgot the record of the other tenant too, its retry would pay again.
func TestO2_APurgeOfATenantLeavesTheOthersAlone(t *testing.T) {
	d := openDesk(t)
	tenants := map[string]*lambdaidem.Guard{"": d.guard}
	for _, prefix := range []string{"acme", "acme-2"} {
		tenants[prefix] = d.guard.With(func(o *lambdaidem.Options) { o.IDPrefix = prefix })
	}
	runs := map[string]int{}
	pay := func(prefix string) error {
		_, err := lambdaidem.Do(t.Context(), tenants[prefix], lambdaidem.Call{Operation: "pay", Key: "k", Principal: "bob"}, func(context.Context) (string, error) {
			runs[prefix]++
			return "paid", nil
		})
		return err
	}
	for prefix := range tenants {
		if err := pay(prefix); err != nil {
			t.Fatal(err)
		}
	}
	var v purgeView
	for prefix, want := range map[string]int{"acme": 1, "acme-2": 1, "acm": 0, "acme-": 0} {
		d.idem("purge", "--id-prefix", prefix, "--dry-run", "-o", "json").want(t, exitDone).into(t, &v)
		if v.Matched != want {
			t.Errorf("the prefix %q matches %d records, want %d", prefix, v.Matched, want)
		}
	}
	d.typing("forget\n", "purge", "--id-prefix", "acme", "--caller", "bob", "--forget", "--reason", "restored").want(t, exitDone, "of caller bob, ID prefix acme", "1 record forgotten")
	d.clock = time.Now().Add(lambdaidem.MinTTL + 5*time.Second)
	for prefix := range tenants {
		if err := pay(prefix); err != nil {
			t.Error(err)
		}
	}
	if want := map[string]int{"": 1, "acme": 2, "acme-2": 1}; !maps.Equal(runs, want) {
		t.Errorf("the runs are %v, want %v", runs, want)
	}
}

func TestO2_APurgeByCallerSaysWhatItLeavesToPrograms(t *testing.T) {
	d := openDesk(t)
	for _, caller := range []string{"carol", "carla", ""} {
		call := lambdaidem.Call{Operation: "charge it", Key: "k", Principal: caller}
		if _, err := lambdaidem.Do(t.Context(), d.guard, call, func(context.Context) (string, error) { return "x", nil }); err != nil {
			t.Fatal(err)
		}
	}
	var v purgeView
	d.idem("purge", "--dry-run", "-o", "json", "--caller", "carol").want(t, exitDone).into(t, &v)
	if v.Matched != 1 || !slices.Equal(v.CallersAlike, []string{"carla"}) || v.WithoutCaller != 1 || !slices.Equal(v.RoutesWithout, []string{"shop charge%20it"}) {
		t.Errorf("%+v; want carol's record, carla like her, and one record without a caller", v)
	}
}

// A record counts once, however many items its answer needs.
func TestO2_PartsOfAnswersDoNotCountAsRecords(t *testing.T) {
	d := openDesk(t)
	noise := make([]byte, 1<<20) // incompressible
	_, _ = rand.Read(noise)
	for _, caller := range []string{"", "carol"} {
		call := lambdaidem.Call{Operation: "report", Key: "k", Principal: caller}
		if _, err := lambdaidem.Do(t.Context(), d.guard, call, func(context.Context) ([]byte, error) { return noise, nil }); err != nil {
			t.Fatal(err)
		}
	}
	var v purgeView
	d.idem("purge", "--caller", "carol", "--dry-run", "--rate", "10000", "-o", "json").want(t, exitDone).into(t, &v)
	if v.Matched != 1 || v.WithoutCaller != 1 || v.Looked < 6 {
		t.Errorf("the report is %+v; want one record of carol and one without a caller", v)
	}
	d.idem("purge", "--caller", "erin", "--dry-run", "--rate", "10000").want(t, exitDone, "Each flag was compared with 2 records:\n  --caller erin matches 0;")
}

// With --forget, a purge prints when the records expire. That depends on --max-skew.
func TestO2_ForgettingSaysWhenTheRecordsExpire(t *testing.T) {
	d := openDesk(t)
	d.pay(d.guard, "a", paid)
	d.typing("forget\n", "purge", "--namespace", "shop", "--forget", "--max-skew", "1h", "--reason", "r").
		want(t, exitDone, "1 record forgotten, as of 1h15m from now", "lets records expire, in 1h15m.")
	if v := d.view("a"); v.Expires.Sub(v.DatabaseTime).Round(time.Minute) != 75*time.Minute {
		t.Errorf("it expires in %v", v.Expires.Sub(v.DatabaseTime))
	}
}

// A record that has expired stays expired: a retry right after the purge runs. So the purge doesn't
// claim that all of its records expire later.
func TestO2_ForgettingDoesNotPostponeAnExpiryInWords(t *testing.T) {
	d := openDesk(t)
	d.clock = time.Now().Add(-40 * time.Minute)
	guard := d.guard.With(func(o *lambdaidem.Options) { o.TTL = lambdaidem.MinTTL })
	runs := 0
	pay := func() {
		t.Helper()
		_, err := lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "order", Key: "k"}, func(context.Context) (string, error) { runs++; return "paid", nil })
		if err != nil {
			t.Error(err)
		}
	}
	pay()
	d.idem("purge", "--route", "order", "--forget", "--reason", "r", "--yes").want(t, exitDone, "1 record forgotten, as of 15m2s from now, or as of an earlier expiry.\n")
	d.clock = time.Now()
	if pay(); runs != 2 {
		t.Errorf("the handler ran %d times; want 2", runs)
	}
}

// An operator has ended a record without an answer, so the first purge has nothing to erase. The
// purge's report must not say that an earlier purge erased the answer.
func TestO2_APurgeSaysThatARecordHadNoAnswer(t *testing.T) {
	d := openDesk(t)
	d.pay(d.held(), "k", died)
	d.idem(append([]string{"settle", "--token", d.view("k").Token, "--reason", "r", "--yes", "--no-answer"}, byKey("k")...)...).want(t, exitDone)
	d.idem("purge", "--all", "--reason", "r", "--yes").want(t, exitDone, "0 records erased.\n1 had no answer to erase.\n")
	d.idem("purge", "--all", "--reason", "r", "--yes", "--forget").want(t, exitDone, "1 record forgotten")
	d.idem("purge", "--all", "--reason", "r", "--yes", "--forget").want(t, exitDone, "0 records forgotten", "1 had been forgotten before.\n")
}

func TestO2_PurgeRefusesWhatItCantMean(t *testing.T) {
	d := openDesk(t)
	state := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(state, []byte("not JSON"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{}, {"--all", "--namespace", "shop"}, {"--all", "--route", "POST /payments"}, {"--all", "--caller", "bob"}, {"--all", "--tenant", "t"}, {"--all", "--id-prefix", "acme"}, {"--caller", "bob", "--id-prefix", ""},
		{"--all", "--older-than", "soon"}, {"--all", "--older-than", "-3h"}, {"--older-than", "70000d"},
		{"--since", "03:00"}, {"--since", "1d"},
		{"--all", "--rate", "0"}, {"--all", "--max-skew", "-1s"}, {"--all", "--state", "x", "--after", "y"}, {"--all", "--state", state}, {"--all", "--reason", ""},
		{"--namespace", "shop", "--since", ""}, {"--namespace", "shop", "--caller", ""}, {"--caller", "bob", "--older-than", ""}, {"--caller", "bob", "--route", ""},
	} {
		if args = append([]string{"purge", "--reason", "r", "--yes"}, args...); d.idem(args...).code != exitUsage {
			t.Errorf("%q: exit code %d", args, d.idem(args...).code)
		}
	}
}

// A purge that was stopped resumes from its journal. Another purge does not accept the journal.
func TestO2_PurgeGoesOnFromItsState(t *testing.T) {
	d := openDesk(t)
	for i := range 30 {
		d.pay(d.guard, fmt.Sprint(i), paid)
	}
	state := filepath.Join(t.TempDir(), "purge.json")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs strings.Builder
	flags := []string{"purge", "--namespace", "shop", "--reason", "r", "--yes", "--state", state}
	if code := Run(ctx, flags, Streams{In: strings.NewReader(""), Out: &out, Err: &errs}); code != exitStopped {
		t.Fatalf("stopped at once, it ended with %d: %s", code, errs.String())
	}
	first := d.view("0").ID
	identity, err := (&purgeCommand{filter: filter{Namespace: "shop"}, operatorFlags: operatorFlags{reason: "r"}}).identity(t.Context(), &connection{table: d.table}, d.client)
	if err != nil {
		t.Fatal(err)
	}
	identity.Endpoint = os.Getenv("AWS_ENDPOINT_URL_DYNAMODB")
	text, err := json.Marshal(journal{Purge: identity, After: first, Kept: time.Now(), Found: newFindings()})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(state, text, 0o600); err != nil {
		t.Fatal(err)
	}
	d.idem("purge", "--all", "--reason", "r", "--yes", "--state", state).want(t, exitUsage, "another purge")
	d.idem(append(flags, "--forget")...).want(t, exitUsage, "another purge")
	var v purgeView
	d.idem(append(flags, "-o", "json")...).want(t, exitDone).into(t, &v)
	if d.view("0").Answer.Failure != nil || v.Purged >= 30 {
		t.Errorf("it began before its journal: %+v", v)
	}
	if _, err := os.Stat(state); !os.IsNotExist(err) {
		t.Errorf("the journal of what is done is there: %v", err)
	}
	d.idem(flags...).want(t, exitDone, fmt.Sprintf("%d records erased", 30-v.Purged))
}

// The report of a resumed purge includes what happened before it stopped. A report with --after
// can't include that, and says so.
func TestO2_AResumedPurgeReportsTheWhole(t *testing.T) {
	d := openDesk(t)
	d.pay(d.guard, "a", paid)
	last := d.view("a").ID
	state := filepath.Join(t.TempDir(), "purge.json")
	identity, err := (&purgeCommand{filter: filter{Caller: "carol"}, operatorFlags: operatorFlags{reason: "r"}}).identity(t.Context(), &connection{table: d.table}, d.client)
	if err != nil {
		t.Fatal(err)
	}
	identity.Endpoint = os.Getenv("AWS_ENDPOINT_URL_DYNAMODB")
	found := newFindings()
	before := filter{Caller: "carol"}.matcher(ages{}, time.Now(), found)
	for _, scope := range []string{"shop POST /payments carol", "shop POST /payments caroll", "shop reserve "} {
		before.match(lambdaidem.Record{State: lambdaidem.Completed, Scope: scope})
	}
	text, err := json.Marshal(journal{Purge: identity, After: last, Found: found, Sum: dynamostore.PurgeProgress{Looked: 3, Matched: 1, InProgress: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(state, text, 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"purge", "--caller", "carol", "--reason", "r", "--yes"}
	resumed := d.idem(append(flags, "--state", state)...).want(t, exitDone, "0 records erased", "1 is in progress", "Looked at 3 items", "  caroll\n")
	if strings.Contains(resumed.out, "Nothing matched") {
		t.Errorf("it says that nothing matched:\n%s", resumed.out)
	}
	after := d.idem(append(flags, "--after", last)...).want(t, exitDone, "only the items after --after")
	if strings.Contains(after.out, "Nothing matched") {
		t.Errorf("it says of a part that nothing matched:\n%s", after.out)
	}
	var v purgeView
	if d.idem(append(flags, "--after", last, "-o", "json")...).want(t, exitDone).into(t, &v); v.After != last || v.Compared != nil {
		t.Errorf("the report is %+v", v)
	}
	whole := d.idem(flags...).want(t, exitDone, "Nothing matched")
	if strings.Contains(whole.out, "--after") {
		t.Errorf("a whole purge says:\n%s", whole.out)
	}
}

// stopsAt calls stop on each write.
type stopsAt struct {
	said strings.Builder
	stop func()
}

func (s *stopsAt) Write(p []byte) (int, error) {
	s.stop()
	return s.said.Write(p)
}

// A purge that is stopped ends with the exit code for a signal, and prints how to continue.
func TestO2_StoppedPurgeSaysHowToGoOn(t *testing.T) {
	d := openDesk(t)
	const records = 260 // more than one page
	for i := range records {
		d.pay(d.guard, fmt.Sprint(i), paid)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	errs, out := &stopsAt{stop: cancel}, strings.Builder{}
	code := Run(ctx, []string{"purge", "--all", "--reason", "r", "--yes", "--rate", "10000"}, Streams{In: strings.NewReader(""), Out: &out, Err: errs, Draws: true})
	_, after, said := strings.Cut(errs.said.String(), "--after '")
	after, _, _ = strings.Cut(after, "'")
	if code != exitStopped || !said {
		t.Fatalf("it ended with %d: %s", code, errs.said.String())
	}
	var v purgeView
	d.idem("purge", "--all", "--reason", "r", "--yes", "--rate", "10000", "--after", after, "-o", "json").want(t, exitDone).into(t, &v)
	if v.Looked == 0 || v.Looked >= records {
		t.Errorf("it went on with %+v", v)
	}
	d.idem("purge", "--all", "--dry-run", "--rate", "10000").want(t, exitDone, "0 records would be erased")
}

func TestO2_PurgeDrawsABar(t *testing.T) {
	d := openDesk(t)
	d.pay(d.guard, "k", paid)
	g := d.at(Streams{In: strings.NewReader(""), Draws: true}, "purge", "--all", "--reason", "r", "--yes")
	g.want(t, exitDone, "1 purged", "100%")
	if strings.Contains(g.out, "%") {
		t.Errorf("the bar is among the output: %q", g.out)
	}
}

// A record whose attempt died after a step is erased, but not forgotten: it keeps its expiry, or has
// none under policy Hold. The report says so, and a second --forget lets the record expire.
func TestO2_PurgeSaysWhichRecordsItOnlyErased(t *testing.T) {
	for name, hold := range map[string]bool{"rerun": false, "hold": true} {
		t.Run(name, func(t *testing.T) {
			d := openDesk(t)
			d.pay(d.guard, "done", paid)
			g := d.guard
			if hold {
				g = d.held()
			}
			d.pay(g, "dead", died)
			soon := func() bool {
				t.Helper()
				expires := d.view("dead").Expires
				return expires != nil && expires.Before(time.Now().Add(lambdaidem.MinTTL+time.Minute))
			}
			purge := func(flags ...string) got {
				return d.idem(append([]string{"purge", "--all", "--reason", "r", "--forget", "--steps"}, flags...)...)
			}
			var v purgeView
			purge("--dry-run", "-o", "json").want(t, exitDone).into(t, &v)
			if v.Matched != 2 || v.Forgotten != 1 || v.OnlyErased != 1 {
				t.Errorf("the dry run reports %+v", v)
			}
			purge("--dry-run").want(t, exitDone, "1 record would be forgotten.\n1 record would be erased, not forgotten: its attempt died; repeat --forget to let it expire.\n")
			purge("--yes").want(t, exitDone, "1 record forgotten, as of 15m2s from now, or as of an earlier expiry.\n1 record erased, not forgotten: its attempt died; repeat --forget to let it expire.\n")
			if soon() {
				t.Error("the first purge lets the record expire")
			}
			purge("--yes", "-o", "json").want(t, exitDone).into(t, &v)
			if v.Purged != 1 || v.Forgotten != 1 || v.OnlyErased != 0 || v.Before != 1 || !soon() {
				t.Errorf("the second purge reports %+v, and the record expires at %v", v, d.view("dead").Expires)
			}
		})
	}
}

// The rate applies to all requests together.
func TestO2_RateOfUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := pace(1000)
		began := time.Now()
		for range 3 {
			if err := wait(t.Context(), 500); err != nil { // the first 1000 units pass without a wait
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 500*time.Millisecond {
			t.Errorf("1500 units at 1000 a second took %v", took)
		}
		if err := wait(t.Context(), 5000); err != nil || time.Since(began) != 5500*time.Millisecond { // more units in one request than the rate allows in a second
			t.Errorf("6500 units took %v (%v)", time.Since(began), err)
		}
		slow := pace(0.5)
		began = time.Now()
		for range 3 {
			if err := slow(t.Context(), 1); err != nil { // the first unit passes without a wait
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 4*time.Second {
			t.Errorf("3 units at 0.5 a second took %v", took)
		}
		uneven := pace(1.5)
		began = time.Now()
		for range 5 {
			if err := uneven(t.Context(), 1); err != nil { // the first two units pass without a wait
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("5 units at 1.5 a second took %v", took)
		}
		halves := pace(1)
		began = time.Now()
		for range 3 {
			if err := halves(t.Context(), 0.5); err != nil { // half a unit counts as one; the first passes without a wait
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("3 requests of half a unit at 1 a second took %v", took)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errLater)
		if err := wait(ctx, 1e6); !errors.Is(err, errLater) {
			t.Errorf("it waited on: %v", err)
		}
	})
}

func TestO2_AStoppedPurgeCountsInWords(t *testing.T) {
	for looked, want := range map[int]string{1: "Stopped after 1 item, 1 purged. ", 2: "Stopped after 2 items, 1 purged. "} {
		var errs strings.Builder
		_ = (&purgeCommand{}).stopped(t.Context(), &app{Err: printer{&errs}}, &journal{Found: newFindings()}, dynamostore.PurgeProgress{Looked: looked, Purged: 1}, errLater)
		if !strings.HasPrefix(errs.String(), want) {
			t.Errorf("it prints %q; want %q", errs.String(), want)
		}
	}
}

// Without the attribute names that the functions use, purge erases nothing and says so.
func TestO2_APurgeWithoutTheRenamedAttributesErasesNothing(t *testing.T) {
	d := openDesk(t)
	d.store = dynamostore.New(d.client, d.table, func(o *dynamostore.Options) { o.DataAttribute, o.AttemptTimeout = "payload", time.Minute })
	d.guard = lambdaidem.New(d.store, func(o *lambdaidem.Options) {
		o.Namespace, o.Observer, o.Clock = "shop", lambdaidem.Discard, d.now
	})
	d.pay(d.guard, "a", paid)
	d.idem("purge", "--all", "--reason", "r", "--yes").want(t, exitDone, "0 records erased", "1 item is no record, or has renamed attributes (--attribute), and was left")
	d.idem(append([]string{"show"}, byKey("a")...)...).want(t, exitFailed, "it is completed and has none of data, failure and parts", "if the table's attributes are renamed")
	if got := d.pay(d.guard, "a", died); got.StatusCode != 201 {
		t.Errorf("a retry got %+v; want the answer", got)
	}
	d.idem("purge", "--all", "--reason", "r", "--yes", "--attribute", "data=payload").want(t, exitDone, "1 record erased")
}

// A purge regards a lease as over only --max-skew after its end, like the functions.
func TestO2_APurgeOfStepsGoesByTheSkewGiven(t *testing.T) {
	d := openDesk(t) // the leases of its guard ended minutes ago
	d.pay(d.guard, "dead", died)
	purge := []string{"purge", "--all", "--steps", "--reason", "r", "--yes"}
	d.idem(append(purge, "--max-skew", "1h")...).want(t, exitDone, "0 records erased", "1 is in progress, and was left")
	d.idem(append(purge, "--max-skew", "0")...).want(t, exitDone, "1 record erased")
}

// Two tenants may have callers of the same name. A purge of a caller says whose records it erases,
// before it erases them.
func TestO2_PurgeNamesTheTenantsOfItsRecords(t *testing.T) {
	d := openDesk(t)
	caller := "jwt:https://issuer|bob"
	d.pay(d.guard, "k", paid)
	d.idem("purge", "--caller", caller, "--dry-run").want(t, exitDone, "1 record would be erased.")
	if got := d.idem("purge", "--caller", caller, "--dry-run"); strings.Contains(got.out, "refix") || strings.Contains(got.out, "tenant") {
		t.Errorf("a purge of a table without tenants names some:\n%s", got.out)
	}
	for _, tenant := range []string{"acme", "globex"} {
		d.pay(d.guard.With(func(o *lambdaidem.Options) { o.IDPrefix = tenant }), "k", paid)
	}
	isolated := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{TenantID: "red team"})
	if _, err := lambdaidem.Do(isolated, d.guard, lambdaidem.Call{Operation: "charge", Key: "k", Principal: caller}, func(context.Context) (int, error) { return 1, nil }); err != nil {
		t.Fatal(err)
	}
	d.idem("purge", "--caller", caller, "--dry-run").want(t, exitDone, "4 records would be erased.",
		"The records have 3 ID prefixes, one for each tenant (--id-prefix chooses one):\n  (none)\n  acme\n  globex\n",
		"The records have 2 Lambda tenant ids (--tenant chooses one):\n  (none)\n  red team\n")
	var v purgeView
	d.idem("purge", "--caller", caller, "--dry-run", "-o", "json").want(t, exitDone).into(t, &v)
	if !slices.Equal(v.IDPrefixes, []string{"", "acme", "globex"}) || !slices.Equal(v.Tenants, []string{"", "red%20team"}) {
		t.Errorf("the tenants are %q and %q", v.IDPrefixes, v.Tenants)
	}
	for _, c := range []struct {
		flags []string
		says  string
	}{
		{nil, caller + ", of every tenant (any ID prefix, any Lambda tenant id), for good."},
		{[]string{"--tenant", "red team"}, "tenant red team, any ID prefix, for good."},
		{[]string{"--id-prefix", "acme"}, "ID prefix acme, any Lambda tenant id, for good."},
		{[]string{"--id-prefix", "acme", "--tenant", "red team"}, "tenant red team, ID prefix acme, for good."},
	} {
		d.typing("no\n", append([]string{"purge", "--caller", caller, "--reason", "erasure request 12"}, c.flags...)...).want(t, exitRefused, c.says)
	}
	got := d.idem("purge", "--caller", caller, "--id-prefix", "acme", "--reason", "erasure request 12", "--yes").want(t, exitDone, "1 record erased.", "The records have 1 ID prefix,")
	if strings.Contains(got.out, "globex") {
		t.Errorf("it erased also:\n%s", got.out)
	}
}
