package dynamostore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// purge lets a purge come to its end.
func (d *desk) purge(t *testing.T, o *Operator, optFns ...func(*PurgeOptions)) (last PurgeProgress) {
	t.Helper()
	for p, err := range o.Purge(t.Context(), optFns...) {
		if err != nil {
			t.Fatal(err)
		}
		last = p
	}
	return last
}

// items is how many items the table has.
func (d *desk) items(t *testing.T) int {
	t.Helper()
	out, err := d.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(d.table), ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	return int(out.Count)
}

func answerOf(text string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return text, nil }
}

func TestO2_PurgeErasesAnswersAndKeepsRecords(t *testing.T) {
	d := openDesk(t, func(o *Options) { o.CompressFrom = 1 << 30 })
	secret := "alice lives in " + strings.Repeat("x", 600<<10)
	for key, text := range map[string]string{"small": "alice lives in Rome", "large": secret} {
		if _, err := d.do(t, d.guard, key, answerOf(text)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.do(t, d.guard, "failed", func(context.Context) (string, error) {
		return "", lambdaidem.Permanent(errors.New("alice has no money"))
	}); err == nil {
		t.Fatal("no error")
	}
	_, _ = d.do(t, d.guard, "released", func(context.Context) (string, error) { return "", errLater })
	d.die(t, "dead")
	untouched := []Inspected{d.inspect(t, d.id("dead")), d.inspect(t, d.id("released"))}
	before := d.inspect(t, d.id("large")).Record

	sum := d.purge(t, d.operator(t, "alice"))
	if sum.Matched != 3 || sum.Purged != 3 || sum.InProgress != 1 || sum.Parts != 3 || sum.Changed+sum.Before+sum.Foreign != 0 || sum.Units < 600 || sum.Looked < 5 {
		t.Errorf("it says %+v", sum)
	}
	d.runs = 0
	for _, key := range []string{"small", "large", "failed"} {
		if _, err := d.do(t, d.guard, key, answerOf("again")); !errors.Is(err, lambdaidem.ErrAnswerUnavailable) || d.runs > 0 {
			t.Errorf("a retry of %s got %v; %d runs", key, err, d.runs)
		}
	}
	for _, seen := range untouched {
		if diff := cmp.Diff(seen.Record, d.inspect(t, seen.Record.ID).Record); diff != "" {
			t.Errorf("it touched: before - after +:\n%s", diff)
		}
	}
	if n := d.items(t); n != 5 {
		t.Errorf("%d items are left; want 5 records and no parts", n)
	}
	raw, err := d.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(d.table)})
	if err != nil {
		t.Fatal(err)
	}
	for _, attrs := range raw.Items {
		text, err := json.Marshal(attrs)
		if err != nil || strings.Contains(string(text), "alice lives") || strings.Contains(string(text), "no money") || attrs[attrErasing] != nil {
			t.Errorf("an answer is left in %s (%v)", text, err)
		}
	}
	after := d.inspect(t, d.id("large"))
	want := before
	want.Result.Value, want.Result.Apart, want.Result.Failure = nil, nil, after.Record.Result.Failure
	if diff := cmp.Diff(want, after.Record); diff != "" {
		t.Errorf("more than the answer changed: before - after +:\n%s", diff)
	}
	if ops := after.Operations; len(ops) != 1 || ops[0].What != OperationErased || ops[0].By != "alice" {
		t.Errorf("the record keeps %+v", ops)
	}
	if again := d.purge(t, d.operator(t, "bob")); again.Before != 3 || again.Purged != 0 {
		t.Errorf("a second purge says %+v", again)
	}
}

func TestO2_PurgeForgets(t *testing.T) {
	d := openDesk(t, func(o *Options) { o.CompressFrom = 1 << 30 })
	for key, text := range map[string]string{"small": "small", "large": strings.Repeat("x", 300<<10), "kept": "kept"} {
		if _, err := d.do(t, d.guard, key, answerOf(text)); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = d.do(t, d.guard, "released", func(context.Context) (string, error) { return "", errLater })
	d.die(t, "dead")
	match := func(p *PurgeOptions) {
		p.Forget, p.Match = true, func(rec lambdaidem.Record) bool { return rec.ID != d.id("kept") }
	}
	dry := d.purge(t, d.operator(t, "alice"), match, func(p *PurgeOptions) { p.DryRun = true })
	if dry.Matched != 3 || dry.Purged != 0 || dry.InProgress != 1 || d.items(t) != 7 {
		t.Errorf("the dry run says %+v, and left %d items of 7", dry, d.items(t))
	}
	sum := d.purge(t, d.operator(t, "alice"), match)
	if sum.Matched != 3 || sum.Purged != 3 || sum.Parts != 2 || sum.InProgress != 1 {
		t.Errorf("it says %+v", sum)
	}
	if n := d.items(t); n != 2 {
		t.Errorf("%d items are left; want what is in progress and what was not matched", n)
	}
	d.runs = 0
	if got, err := d.do(t, d.guard, "small", answerOf("again")); got != "again" || err != nil || d.runs != 1 {
		t.Errorf("a retry got %q, %v after %d runs", got, err, d.runs)
	}
}

// D4: a table may be shared; what is not ours is left alone.
func TestO2_PurgeLeavesForeignItems(t *testing.T) {
	d := openDesk(t)
	foreign := attributes{attrID: str("other#1"), attrStatus: str("COMPLETED"), attrData: str("theirs"), attrExpiration: number(now.Add(time.Hour).Unix())}
	if _, err := d.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(d.table), Item: foreign}); err != nil {
		t.Fatal(err)
	}
	if sum := d.purge(t, d.operator(t, "alice"), func(p *PurgeOptions) { p.Forget = true }); sum.Foreign != 1 || sum.Matched != 0 || d.items(t) != 1 {
		t.Errorf("it says %+v", sum)
	}
}

// A released record that runs again between its page and its write is in progress.
func TestO2_PurgeNeverTouchesWhatBeganMeanwhile(t *testing.T) {
	d := openDesk(t)
	_, _ = d.do(t, d.guard, "k", func(context.Context) (string, error) { return "", errLater })
	again := func(lambdaidem.Record) bool { // asked when the page was read, and nothing written yet
		d.die(t, "k")
		return true
	}
	sum := d.purge(t, d.operator(t, "alice"), func(p *PurgeOptions) { p.Forget, p.Match = true, again })
	if sum.Changed != 1 || sum.Purged != 0 {
		t.Errorf("it says %+v", sum)
	}
	if seen := d.inspect(t, d.id("k")); seen.Record.State != lambdaidem.InProgress {
		t.Errorf("the record is %+v", seen.Record)
	}
}

// A reader who meets a purge half way gets the answer, or is told to try again, or
// that there is none: never half of one (R3).
func TestR3_ReplaysDuringAPurge(t *testing.T) {
	d := openDesk(t, func(o *Options) { o.CompressFrom = 1 << 30 })
	text := strings.Repeat("x", 600<<10)
	if _, err := d.do(t, d.guard, "k", answerOf(text)); err != nil {
		t.Fatal(err)
	}
	users := d.client.Options()
	read := make(chan error)
	s := New(dynamodb.New(users, func(o *dynamodb.Options) { o.HTTPClient = users.HTTPClient }), d.table, patient)
	o, err := s.Operator("alice", "why")
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	go func() {
		defer close(read)
		for {
			select {
			case <-stop:
				return
			default:
			}
			got, err := lambdaidem.Do(context.Background(), d.guard, lambdaidem.Call{Operation: "pay", Key: "k"}, answerOf("again")) //nolint:usetesting // it may outlive the test's context
			switch {
			case err == nil && got == text:
			case errors.Is(err, lambdaidem.ErrAnswerUnavailable), errors.Is(err, lambdaidem.ErrStoreUnavailable):
			default:
				read <- fmt.Errorf("a reader got %d bytes, %w", len(got), err)
				return
			}
		}
	}()
	d.purge(t, o)
	close(stop)
	for err := range read {
		t.Error(err)
	}
}

// A purge that dies between a record and its parts is made good by the next one.
func TestO2_PurgeResumesWhatDied(t *testing.T) {
	for _, forget := range []bool{false, true} {
		t.Run(fmt.Sprintf("forget=%v", forget), func(t *testing.T) {
			d := openDesk(t, func(o *Options) { o.CompressFrom = 1 << 30 })
			if _, err := d.do(t, d.guard, "k", answerOf(strings.Repeat("x", 600<<10))); err != nil {
				t.Fatal(err)
			}
			client, w := over(d.client)
			o, err := New(client, d.table, quick, func(o *Options) { o.Attempts = 1 }).Operator("alice", "why")
			if err != nil {
				t.Fatal(err)
			}
			w.after("DeleteItem", pass, loseRequest)
			var last PurgeProgress
			for last, err = range o.Purge(t.Context(), func(p *PurgeOptions) { p.Forget = forget }) {
			}
			wantStoreError(t, err, opPurge, lambdaidem.ReasonUnreachable, false)
			if last.Purged != 0 || last.Parts != 1 {
				t.Errorf("it says %+v", last)
			}
			if _, err := d.do(t, d.guard, "k", answerOf("again")); !errors.Is(err, lambdaidem.ErrAnswerUnavailable) {
				t.Errorf("a retry meanwhile got %v", err)
			}
			if sum := d.purge(t, d.operator(t, "bob"), func(p *PurgeOptions) { p.Forget, p.After = forget, last.After }); sum.Purged != 1 || sum.Parts != 3 {
				t.Errorf("the next one says %+v", sum)
			}
			want := 1
			if forget {
				want = 0
			}
			if n := d.items(t); n != want {
				t.Errorf("%d items are left; want %d", n, want)
			}
		})
	}
}

// The rate is what Pace makes of the units, and its error is the end.
func TestO2_PurgeKeepsItsPace(t *testing.T) {
	d := openDesk(t)
	for i := range 20 {
		if _, err := d.do(t, d.guard, strconv.Itoa(i), answerOf("x")); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	units := 0.0
	sum := d.purge(t, d.operator(t, "alice"), func(p *PurgeOptions) {
		p.PageSize = 7
		p.Pace = func(_ context.Context, n float64) error {
			mu.Lock()
			defer mu.Unlock()
			units += n
			return nil
		}
	})
	if sum.Units != units || units < 20 || sum.Purged != 20 {
		t.Errorf("it says %+v; Pace was told of %v units", sum, units)
	}
	enough := errors.New("enough")
	var pages, last = 0, PurgeProgress{}
	var err error
	for last, err = range d.operator(t, "alice").Purge(t.Context(), func(p *PurgeOptions) {
		p.PageSize, p.Forget = 7, true
		p.Pace = func(context.Context, float64) error {
			mu.Lock()
			defer mu.Unlock()
			if pages > 0 {
				return enough
			}
			return nil
		}
	}) {
		mu.Lock()
		pages++
		mu.Unlock()
	}
	if !errors.Is(err, enough) || pages != 2 || last.After == "" || last.Looked != 7 {
		t.Errorf("it ended with %v after %d pages, and %+v", err, pages, last)
	}
	if sum := d.purge(t, d.operator(t, "alice"), func(p *PurgeOptions) { p.Forget, p.After = true, last.After }); sum.Purged+7 != 20 || d.items(t) != 0 {
		t.Errorf("resumed, it says %+v, and left %d", sum, d.items(t))
	}
}

func TestO2_ScanLeasesFindsWhatIsInProgress(t *testing.T) {
	d := openDesk(t)
	for i := range 30 {
		if _, err := d.do(t, d.guard, strconv.Itoa(i), answerOf("x")); err != nil {
			t.Fatal(err)
		}
	}
	d.die(t, "dead")
	d.clock = time.Now()
	d.die(t, "live")
	found := map[string]bool{}
	for seen, err := range d.store.ScanLeases(t.Context(), func(o *ScanOptions) { o.PageSize = 5 }) {
		if err != nil {
			t.Fatal(err)
		}
		found[seen.Record.ID] = seen.Record.LeaseLiveAt(seen.At())
	}
	if diff := cmp.Diff(map[string]bool{d.id("dead"): false, d.id("live"): true}, found); diff != "" {
		t.Errorf("want - found +:\n%s", diff)
	}
	for _, err := range d.store.ScanLeases(t.Context()) { // it may be left
		if err != nil {
			t.Error(err)
		}
		break
	}
}
