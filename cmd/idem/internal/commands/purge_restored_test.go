package commands

import (
	"context"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// A purge of restored data forgets a record only if the times in the record prove that its writes are
// lost. It lists a record if they prove nothing and a retry could replay lost writes.
func TestO2_RestoredDataIsComparedWithTheTimesOfRecords(t *testing.T) {
	point := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	until, now := point.Add(time.Hour), point.Add(70*time.Minute)
	const (
		skew   = 2 * time.Second
		margin = skew + time.Second
		late   = 30*time.Minute + margin
		ms     = time.Millisecond
		mid    = 10 * time.Minute // after the point, and long before until
	)
	type times struct{ began, ended time.Duration } // after the point
	record := func(state lambdaidem.State, at times) lambdaidem.Record {
		rec := lambdaidem.Record{ID: "r", Scope: "shop  pay ", State: state, Attempt: 1, StartedAt: point.Add(at.began), LeaseEnd: point.Add(at.ended), Expires: now.Add(time.Hour)}
		if state == lambdaidem.Completed {
			rec.CompletedAt, rec.LeaseEnd = rec.LeaseEnd, rec.StartedAt.Add(24*time.Hour)
		}
		return rec
	}
	completed := func(began, ended time.Duration) lambdaidem.Record {
		return record(lambdaidem.Completed, times{began, ended})
	}
	second := func(rec lambdaidem.Record) lambdaidem.Record { rec.Attempt = 2; return rec }
	steps := func(rec lambdaidem.Record) lambdaidem.Record {
		rec.Steps = lambdaidem.Steps{"reserve": []byte("1")}
		return rec
	}
	expiring := func(rec lambdaidem.Record, at time.Time) lambdaidem.Record { rec.Expires = at; return rec }
	const forgotten, listed, left = "forgotten", "listed", "left"
	for _, c := range []struct {
		name string
		rec  lambdaidem.Record
		want string
	}{
		{"between the times", completed(mid, mid), forgotten},
		{"committed just before the point at the latest", completed(-time.Hour, -late-ms), left},
		{"committed at the point at the latest", completed(-time.Hour, -late), listed},
		{"began at the point at the earliest", completed(margin, margin), listed},
		{"began just after the point at the earliest", completed(margin+ms, margin+ms), forgotten},
		{"settled after the point", completed(-time.Hour, mid), listed},
		{"committed just before until at the latest", completed(mid, time.Hour-late-ms), forgotten},
		{"committed at until at the latest", completed(mid, time.Hour-late), listed},
		{"began at until at the earliest", completed(time.Hour+margin, time.Hour+mid), listed},
		{"began just after until at the earliest", completed(time.Hour+margin+ms, time.Hour+mid), left},
		{"two attempts, between the times", second(completed(mid, mid)), listed},
		{"two attempts, before the point", second(completed(-time.Hour, -late-ms)), left},
		{"two attempts, after until", second(completed(time.Hour+margin+ms, time.Hour+mid)), listed},

		{"released between the times", record(lambdaidem.Released, times{mid, mid}), forgotten},
		{"released with steps between the times", steps(record(lambdaidem.Released, times{mid, mid})), forgotten},
		{"released with steps across the point", steps(record(lambdaidem.Released, times{-mid, mid})), listed},
		{"released with steps before the point", steps(record(lambdaidem.Released, times{-time.Hour, -late - ms})), left},
		{"released across the point", record(lambdaidem.Released, times{-mid, mid}), left},

		{"in progress with steps between the times", steps(record(lambdaidem.InProgress, times{mid, mid})), listed},
		{"in progress with steps before the point", steps(expiring(record(lambdaidem.InProgress, times{-time.Hour, -late - ms}), time.Time{})), left},
		{"in progress, can't complete any more", record(lambdaidem.InProgress, times{mid, 70*time.Minute - late}), left},
		{"in progress, can still complete", record(lambdaidem.InProgress, times{mid, 70*time.Minute - late + ms}), listed},
		{"in progress, began after until", record(lambdaidem.InProgress, times{time.Hour + margin + ms, 80 * time.Minute}), left},

		{"expired", expiring(completed(-mid, mid), now.Add(-skew)), left},
		{"expired only by a clock that is ahead", expiring(completed(-mid, mid), now.Add(-skew+time.Second)), listed},

		{"a part from after the point", lambdaidem.Record{ID: "r", Scope: "shop  pay ", StartedAt: point}, forgotten},
		{"a part from before the point", lambdaidem.Record{ID: "r", Scope: "shop  pay ", StartedAt: point.Add(-ms)}, left},
	} {
		p := purgeCommand{filter: filter{Namespace: "shop", Since: point.Format(time.RFC3339), Until: until.Format(time.RFC3339)}, forget: true, rate: 1, maxSkew: skew}
		ages, err := p.check()
		if err != nil {
			t.Fatal(err)
		}
		got := left
		m := p.matcher(ages, now, newFindings())
		if m.match(c.rec) {
			got = forgotten
		}
		if len(m.Doubtful) > 0 {
			got += listed
		}
		if got = strings.TrimPrefix(got, left); got == "" {
			got = left
		}
		if got != c.want {
			t.Errorf("%s: %s; want %s", c.name, got, c.want)
		}
		p.Namespace = "other"
		if m := p.matcher(ages, now, newFindings()); m.match(c.rec) || len(m.Doubtful) > 0 {
			t.Errorf("%s: a purge of another namespace chooses it", c.name)
		}
	}
}

// hookedClient calls before with the operation of each request.
type hookedClient struct {
	users  dynamodb.HTTPClient
	before func(operation string)
}

func (h hookedClient) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	h.before(operation)
	return h.users.Do(r)
}

// The business table is restored to an earlier time, and the table of records is kept. An operator
// purges as docs/operate.md says, and forgets by their ids those of the listed records whose writes
// are missing. Every retry then finds its write there exactly once.
func TestG1_RestoredDataIsWrittenOnce(t *testing.T) {
	for name, c := range map[string]struct {
		skew, outage time.Duration // of the function's clock; of the database, before the commit
		point, until time.Duration // after the handler has returned
		listed       bool
	}{
		"written before":                      {point: 40 * time.Minute, until: 100 * time.Minute},
		"written after":                       {point: -10 * time.Second, until: 100 * time.Minute},
		"written to the restored data":        {point: -time.Hour, until: -10 * time.Second},
		"committed late, after the point":     {outage: 10 * time.Minute, point: 5 * time.Minute, until: 100 * time.Minute, listed: true},
		"completed after, by a clock ahead":   {skew: 1500 * time.Millisecond, point: time.Second, until: 100 * time.Minute, listed: true},
		"committed late, after until":         {outage: 10 * time.Minute, point: -time.Hour, until: 5 * time.Minute, listed: true},
		"began before until, by a slow clock": {skew: -1500 * time.Millisecond, point: -time.Hour, until: -time.Second, listed: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := openLateDesk(t)
			if err := dynamostore.CreateTable(t.Context(), d.client, "accounts"); err != nil {
				t.Fatal(err)
			}
			var committed time.Time
			users := dynamodb.New(d.client.Options(), func(o *dynamodb.Options) {
				o.HTTPClient = hookedClient{d.client.Options().HTTPClient, func(operation string) {
					if operation == "TransactWriteItems" && committed.IsZero() {
						d.offset += c.outage // all earlier tries were lost
						committed = d.now()
					}
				}}
			})
			g := lambdaidem.New(dynamostore.New(users, "records"), func(o *lambdaidem.Options) {
				o.Namespace, o.Observer = "shop", lambdaidem.Discard
				o.Clock = func() time.Time { return d.now().Add(c.skew) }
			})
			var returned time.Time
			pay := func() {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), 14*time.Minute)
				defer cancel()
				got, err := lambdaidem.Do(ctx, g, lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (string, error) {
					dynamostore.Enlist(ctx).UpdateValue("credit", "accounts", map[string]string{"id": "bob"}, "ADD balance :n", dynamostore.Args{":n": 40})
					returned = d.now()
					return "paid", nil
				})
				if got != "paid" || err != nil {
					t.Errorf("the payment gets %q, %v", got, err)
				}
			}
			pay()
			bob := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "bob"}}
			balance := func() string {
				out, err := d.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("accounts"), Key: bob})
				if err != nil {
					t.Fatal(err)
				}
				if n, ok := out.Item["balance"].(*types.AttributeValueMemberN); ok {
					return n.Value
				}
				return "0"
			}
			point, until := returned.Add(c.point), returned.Add(c.until)
			if committed.After(point) && committed.Before(until) { // restore the table
				if _, err := d.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("accounts"), Key: bob}); err != nil {
					t.Fatal(err)
				}
			}
			d.offset += 2 * time.Hour

			forget := []string{"purge", "--forget", "--reason", "restored", "--yes"}
			code, text := d.run(strings.NewReader(""), false, append(forget, "--namespace", "shop",
				"--since", point.UTC().Format(time.RFC3339Nano), "--until", until.UTC().Format(time.RFC3339Nano))...)
			id := g.RecordID(lambdaidem.Identity{Namespace: "shop", Operation: "pay", Key: "k"})
			if code != exitDone || strings.Contains(text, id) != c.listed {
				t.Errorf("exit code %d; want the record to be listed: %v\n%s", code, c.listed, text)
			}
			if c.listed && balance() == "0" {
				if code, text := d.run(strings.NewReader(""), false, append(forget, id)...); code != exitDone || !strings.Contains(text, "1 record forgotten") {
					t.Errorf("exit code %d\n%s", code, text)
				}
			}
			d.offset += 20 * time.Minute
			if pay(); balance() != "40" {
				t.Errorf("after a retry the balance is %s; want 40\n%s", balance(), text)
			}
		})
	}
}

// restoredDesk returns a desk an hour after three records were completed: a, the one of two attempts
// b, and c, whose answer was erased since. It also returns the flags of a purge of restored data that
// forgets a, and the ids.
func restoredDesk(t *testing.T) (d *lateDesk, purge, ids []string) {
	t.Helper()
	d = openLateDesk(t)
	g := d.guard(lambdaidem.Rerun)
	began := d.now()
	for _, key := range []string{"a", "b", "b", "c", "c"} {
		d.offset += 5 * time.Second
		_, _ = lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "pay", Key: key}, func(ctx context.Context) (string, error) {
			if lambdaidem.Attempt(ctx) == 1 && key != "a" {
				return "", errLater
			}
			return "paid", nil
		})
	}
	for _, key := range []string{"a", "b", "c"} {
		ids = append(ids, g.RecordID(lambdaidem.Identity{Namespace: "shop", Operation: "pay", Key: key}))
	}
	d.offset += time.Hour
	if code, text := d.run(strings.NewReader(""), false, "purge", ids[2], "--reason", "r", "--yes"); code != exitDone || !strings.Contains(text, "1 record erased.") {
		t.Fatalf("exit code %d\n%s", code, text)
	}
	return d, []string{"purge", "--forget", "--namespace", "shop", "--reason", "r", "--yes",
		"--since", began.UTC().Format(time.RFC3339), "--until", d.now().UTC().Format(time.RFC3339)}, ids
}

func TestO2_PurgeListsWhatAnOperatorMustDecide(t *testing.T) {
	d, purge, ids := restoredDesk(t)
	_, text := d.run(strings.NewReader(""), false, append(purge, "--dry-run")...)
	report, list, _ := strings.Cut(text, "DECIDE ")
	if !strings.HasPrefix(report, "1 record would be forgotten.\n") || strings.Contains(report, "Nothing matched") {
		t.Errorf("it reports\n%s", report)
	}
	lines := strings.Split(strings.TrimSpace(list), "\n")
	if len(lines) != 8 || !strings.HasPrefix(lines[0], "2 records one by one: ") || !strings.Contains(list, "idem purge --forget RECORD...") {
		t.Fatalf("it lists\n%s", list)
	}
	for i, want := range []string{"completed  2        0      pay    (none)  " + ids[1], "erased     2        0      pay    (none)  " + ids[2]} {
		if got := lines[6+i]; !strings.HasSuffix(got, "Z  "+want) {
			t.Errorf("it lists %q; want %q", got, want)
		}
	}
	var v purgeView
	code, text := d.run(strings.NewReader(""), false, append(purge, "-o", "json")...)
	_, text, _ = strings.Cut(text, "\n") // the warning
	got{code: code, out: text}.into(t, &v)
	if len(v.Doubtful) != 2 || v.Doubtful[0].ID == v.Doubtful[1].ID || v.Doubtful[0].CompletedAt.IsZero() || v.Forgotten != 1 || v.Compared != nil {
		t.Errorf("it reports %+v", v)
	}
}

// An answer that was erased differs from a failure that a handler returned because the answer of
// another call was erased.
func TestO2_StatesOfRecordsToDecide(t *testing.T) {
	for want, f := range map[string]*lambdaidem.Failure{
		"erased":    lambdaidem.NoAnswer("it was erased"),
		"failed":    {Code: lambdaidem.ErrAnswerUnavailable, Type: "errorString"},
		"completed": nil,
	} {
		rec := lambdaidem.Record{State: lambdaidem.Completed, Result: lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, Failure: f}}
		if want == "failed" {
			rec.Result.Outcome = lambdaidem.OutcomeFailed
		}
		if got := doubtfulOf(rec, time.Now()).State; got != want {
			t.Errorf("the state is %q; want %q", got, want)
		}
	}
	declined := lambdaidem.Result{Outcome: lambdaidem.OutcomeFailed, Failure: &lambdaidem.Failure{Code: "declined"}}
	if got := doubtfulOf(lambdaidem.Record{State: lambdaidem.Completed, Result: declined}, time.Now()).State; got != "failed" {
		t.Errorf("the state of a declined payment is %q", got)
	}
	var out strings.Builder
	held := doubtfulOf(lambdaidem.Record{ID: "r", State: lambdaidem.InProgress, Attempt: 1, Scope: "no scope", StartedAt: time.Unix(0, 0).UTC()}, time.Now())
	if err := printDoubtful(printer{&out}, []doubtfulView{held}); err != nil || !strings.HasSuffix(out.String(), "\n1970-01-01T00:00:00Z             held   1        0      no scope          r\n") {
		t.Errorf("%v; it prints\n%s", err, out.String())
	}
}

// A purge that chooses nothing to forget does not say that a flag is mistyped if there are records to
// decide.
func TestO2_APurgeWithRecordsToDecideHasMatchedSomething(t *testing.T) {
	d, purge, _ := restoredDesk(t)
	for _, want := range []string{"1 record forgotten", "0 records forgotten"} {
		if _, text := d.run(strings.NewReader(""), false, purge...); !strings.Contains(text, want) || !strings.Contains(text, "DECIDE 2 records") || strings.Contains(text, "Nothing matched") {
			t.Errorf("it says\n%s", text)
		}
	}
	m := filter{Since: "x"}.matcher(ages{since: time.Now(), until: time.Now()}, time.Now(), newFindings())
	if m.Doubtful = []doubtfulView{{}}; m.compared() != nil {
		t.Error("it compares the flags although there is a record to decide")
	}
}

// A purge that stops without a journal prints the records to decide that it has found. With a journal
// it keeps them for the report.
func TestO2_AStoppedPurgeLosesNoRecordToDecide(t *testing.T) {
	for _, withJournal := range []bool{false, true} {
		d, purge, ids := restoredDesk(t)
		d.meets = func([]byte) (throttled, replyLost bool) { return false, true }
		if withJournal {
			purge = append(purge, "--state", filepath.Join(t.TempDir(), "state"))
		}
		code, text := d.run(strings.NewReader(""), false, purge...)
		if code != exitUnknown || strings.Contains(text, "DECIDE 2 records") == withJournal || strings.Contains(text, ids[1]) == withJournal {
			t.Errorf("with a journal (%v): exit code %d\n%s", withJournal, code, text)
		}
	}

	file := filepath.Join(t.TempDir(), "state")
	j, err := openJournal(file, purgeIdentity{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC().Round(0)
	want := doubtfulView{ID: "r", State: "completed", Attempt: 2, Steps: 1, Scope: "shop  pay ", StartedAt: now, CompletedAt: now}
	j.Found.Doubtful = []doubtfulView{want}
	if err := j.keep(dynamostore.PurgeProgress{After: "r"}); err != nil {
		t.Fatal(err)
	}
	if j, err = openJournal(file, purgeIdentity{}); err != nil || !slices.Equal(j.Found.Doubtful, []doubtfulView{want}) {
		t.Errorf("the journal has %+v, %v", j.Found, err)
	}
	m := filter{IDs: "r"}.matcher(ages{}, now, j.Found) // adds to the findings
	for _, id := range []string{"r", "another"} {
		m.match(lambdaidem.Record{ID: id, State: lambdaidem.Completed})
	}
	if !j.Found.Named["r"] || len(j.Found.Named) != 1 {
		t.Errorf("the records given and found are %v", j.Found.Named)
	}
}

// Records can be given by their ids. An id that no record has is reported, because it may be mistyped.
func TestO2_PurgeByIDs(t *testing.T) {
	d, _, ids := restoredDesk(t)
	purge := []string{"purge", "--forget", ids[0], ids[1], "lambdaidem#mistyped", "--reason", "r"}
	code, text := d.run(strings.NewReader("forget\n"), true, purge...)
	if code != exitDone || !strings.Contains(text, "This forgets the records with these ids: "+ids[0]+" "+ids[1]+" lambdaidem#mistyped.") ||
		!strings.Contains(text, "2 records forgotten") || !strings.HasSuffix(text, "1 record is not in the table:\n  lambdaidem#mistyped\n") {
		t.Errorf("exit code %d\n%s", code, text)
	}
	if rec, err := d.store.Inspect(t.Context(), ids[2]); err != nil || len(rec.Operations) != 1 {
		t.Errorf("another record is %+v, %v", rec, err)
	}
	if _, text := d.run(strings.NewReader(""), false, "purge", "--dry-run", "lambdaidem#mistyped"); strings.Contains(text, "Nothing matched") || !strings.Contains(text, "not in the table") {
		t.Errorf("it says\n%s", text)
	}
	if _, text := d.run(strings.NewReader(""), false, "purge", "--dry-run", "--after", ids[0], ids[0]); strings.Contains(text, "not in the table") {
		t.Errorf("a purge of a part of the table says\n%s", text)
	}
}

func TestO2_PurgeRefusesTimesOfARestoreThatItCantMean(t *testing.T) {
	d := openLateDesk(t)
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	for _, c := range []struct {
		args string
		says string // "": it is accepted
	}{
		{"--forget --since " + at(-2*time.Hour) + " --until " + at(-time.Hour), ""},
		{"--forget --since " + at(-2*time.Hour) + " --until " + at(0), ""},
		{"--since " + at(-2*time.Hour), ""},
		{"--forget --since " + at(-2*time.Hour), "--forget with --since needs --until"},
		{"--forget --namespace shop --until " + at(-time.Hour), "--until is for --forget with --since"},
		{"--since " + at(-2*time.Hour) + " --until " + at(-time.Hour), "--until is for --forget with --since"},
		{"--forget --since " + at(-time.Hour) + " --until " + at(-time.Hour), "it must be after --since"},
		{"--forget --since " + at(-time.Hour) + " --until " + at(time.Minute), "give a time that has passed"},
		{"--forget --since " + at(-time.Hour) + " --until 04:00", `--until is "04:00"; it must be a time`},
		{"--forget --since " + at(-time.Hour) + " --until=", "--until is empty"},
		{"lambdaidem#a", ""},
		{"lambdaidem#a --namespace shop", "leave out the ids or the flags"},
		{"lambdaidem#a --all", "leave out the ids or the flags"},
	} {
		code, text := d.run(strings.NewReader(""), false, append([]string{"purge", "--reason", "r", "--yes"}, strings.Fields(c.args)...)...)
		if want := map[bool]int{true: exitDone, false: exitUsage}[c.says == ""]; code != want || !strings.Contains(text, c.says) {
			t.Errorf("%s: exit code %d; want %d with %q\n%s", c.args, code, want, c.says, text)
		}
	}
	if got := (filter{Since: "S", Until: "U", Tenant: "t", IDPrefix: "p"}).says(); got != "of tenant t, ID prefix p, since S, until U" {
		t.Errorf("it asks about records %s", got)
	}
}
