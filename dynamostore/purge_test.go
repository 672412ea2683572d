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
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// purge runs a purge to its end, and returns its last progress.
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

// items returns the number of items in the table.
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
	for _, inspected := range untouched {
		if diff := cmp.Diff(inspected.Record, d.inspect(t, inspected.Record.ID).Record); diff != "" {
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
	_, _ = d.do(t, d.guard, "released", func(ctx context.Context) (string, error) {
		_, _ = lambdaidem.Step(ctx, "card", func(context.Context) (string, error) { return "small", nil })
		return "", errLater
	})
	d.die(t, "dead")
	released := d.inspect(t, d.id("released")).Record
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
	if n := d.items(t); n != 5 {
		t.Errorf("%d items are left; want five records and no parts", n)
	}
	for _, key := range []string{"small", "large", "released"} {
		inspected := d.inspect(t, d.id(key))
		if rec := inspected.Record; len(rec.Result.Value)+len(rec.Steps) > 0 || rec.Result.Apart != nil {
			t.Errorf("of %s there is left %+v", key, rec)
		}
		if ops := inspected.Operations; len(ops) != 1 || ops[0].What != OperationForgotten || ops[0].By != "alice" {
			t.Errorf("%s keeps %+v", key, ops)
		}
	}
	if again := d.purge(t, d.operator(t, "alice"), match); again.Purged != 0 || again.Before != 3 {
		t.Errorf("a second one says %+v", again)
	}

	// Requests that were made before the purge and arrive now are refused.
	d.runs = 0
	if _, err := d.do(t, d.guard, "small", answerOf("again")); !errors.Is(err, lambdaidem.ErrAnswerUnavailable) || d.runs != 0 {
		t.Errorf("a request that was delayed got %v after %d runs", err, d.runs)
	}
	late := lambdaidem.Claim{ID: released.ID, Token: "late", Now: d.clock, LeaseEnd: d.clock.Add(time.Minute), Expires: d.clock.Add(time.Hour), Over: &released}
	if rec, err := d.store.Acquire(t.Context(), late); err != nil || rec.Token == late.Token {
		t.Errorf("a takeover that was delayed got %+v, %v", rec, err)
	}

	d.clock = time.Now().Add(lambdaidem.MinTTL + 5*time.Second) // after the expiry, even with MaxSkew
	for _, key := range []string{"small", "large", "released"} {
		if got, err := d.do(t, d.guard, key, answerOf("again")); got != "again" || err != nil {
			t.Errorf("a retry of %s got %q, %v", key, got, err)
		}
		if rec := d.inspect(t, d.id(key)).Record; rec.Attempt != 1 {
			t.Errorf("the retry of %s is attempt %d", key, rec.Attempt)
		}
	}
	if sum := d.purge(t, d.operator(t, "alice"), match); sum.Purged != 3 {
		t.Errorf("after the retries it says %+v", sum)
	}
}

// A write that forgets a record may be delayed for 15 minutes. The new expiry must not be in the
// past when it arrives, because requests that were sent meanwhile would then find the record
// expired.
func TestO2_ForgettingNeverWorksBackwards(t *testing.T) {
	d := openDesk(t)
	for _, key := range []string{"done", "released"} {
		_, _ = d.do(t, d.guard, key, func(context.Context) (string, error) {
			if key == "released" {
				return "", errLater
			}
			return "done", nil
		})
	}
	d.purge(t, d.operator(t, "alice"), func(p *PurgeOptions) { p.Forget = true })
	for _, key := range []string{"done", "released"} {
		inspected := d.inspect(t, d.id(key))
		if after := inspected.Record.Expires.Sub(inspected.Operations[0].At); after < lambdaidem.MinTTL+2*time.Second || after > lambdaidem.MinTTL+5*time.Second {
			t.Errorf("%s expires %v after it was forgotten", key, after)
		}
	}
}

// Two purges forget the same record. The later one does not postpone the expiry.
func TestO2_ForgettingTwiceNeverPostpones(t *testing.T) {
	d := openDesk(t)
	if _, err := d.do(t, d.guard, "k", answerOf("x")); err != nil {
		t.Fatal(err)
	}
	var first lambdaidem.Record
	sum := d.purge(t, d.operator(t, "alice"), func(p *PurgeOptions) {
		p.Forget = true
		p.Match = func(lambdaidem.Record) bool { // called when the page has been read and nothing has been written yet
			if first.ID == "" {
				first.ID = "being forgotten"
				d.purge(t, d.operator(t, "bob", func(o *OperatorOptions) { o.MaxSkew = 1 }), func(p *PurgeOptions) { p.Forget = true })
				first = d.inspect(t, d.id("k")).Record
			}
			return true
		}
	})
	if sum.Changed != 1 || sum.Purged != 0 {
		t.Errorf("it says %+v", sum)
	}
	if now := d.inspect(t, d.id("k")).Record; !now.Expires.Equal(first.Expires) {
		t.Errorf("it would have expired at %v, and does so at %v", first.Expires, now.Expires)
	}
}

// A purge that forgets an expired record does not change its expiry.
func TestO2_ForgettingNeverBringsARecordBack(t *testing.T) {
	d := openDesk(t)
	d.clock = time.Now().Add(-48 * time.Hour)
	if _, err := d.do(t, d.guard, "k", answerOf("first")); err != nil {
		t.Fatal(err)
	}
	before := d.inspect(t, d.id("k")).Record.Expires
	if sum := d.purge(t, d.operator(t, "alice"), func(p *PurgeOptions) { p.Forget = true }); sum.Purged != 1 {
		t.Errorf("it says %+v", sum)
	}
	if rec := d.inspect(t, d.id("k")).Record; !rec.Expires.Equal(before) || rec.Result.Value != nil {
		t.Errorf("it expired at %v, and is now %+v", before, rec)
	}
}

// A retry took over a forgotten record before it expired. Another purge must forget the new record
// too.
func TestO2_ARecordThatRanAgainIsForgottenAgain(t *testing.T) {
	d := openDesk(t)
	_, _ = d.do(t, d.guard, "k", func(context.Context) (string, error) { return "", errLater })
	forget := func(p *PurgeOptions) { p.Forget = true }
	d.purge(t, d.operator(t, "alice"), forget)
	if got, err := d.do(t, d.guard, "k", answerOf("again")); got != "again" || err != nil { // the guard's clock is behind, so the record has not expired
		t.Fatalf("a retry got %q, %v", got, err)
	}
	if sum := d.purge(t, d.operator(t, "alice"), forget); sum.Purged != 1 || sum.Before != 0 {
		t.Errorf("it says %+v", sum)
	}
}

// A retry has released a forgotten record again and has set a later expiry.
func TestO2_AForgottenRecordWithALaterExpiryIsForgottenAgain(t *testing.T) {
	d := openDesk(t)
	fails := func(context.Context) (string, error) { return "", errLater }
	forget := func(p *PurgeOptions) { p.Forget = true }
	_, _ = d.do(t, d.guard, "k", fails)
	d.purge(t, d.operator(t, "alice"), forget)
	soon := d.inspect(t, d.id("k")).Record.Expires
	_, _ = d.do(t, d.guard, "k", fails)
	if late := d.inspect(t, d.id("k")).Record.Expires; late.Sub(soon) < time.Hour {
		t.Fatalf("the retry lets the record expire at %v, %v after the purge did", late, late.Sub(soon))
	}
	if sum := d.purge(t, d.operator(t, "alice"), forget); sum.Purged != 1 || sum.Before != 0 {
		t.Errorf("the second purge says %+v", sum)
	}
	if again := d.inspect(t, d.id("k")).Record.Expires; again.Sub(soon) > time.Minute {
		t.Errorf("the record expires %v later than after the first purge", again.Sub(soon))
	}
}

// If TTL deletes the item before the purge writes, the record counts as purged.
func TestO2_WhatIsDeletedMeanwhileIsPurged(t *testing.T) {
	for _, forget := range []bool{false, true} {
		d := openDesk(t)
		if _, err := d.do(t, d.guard, "k", answerOf("x")); err != nil {
			t.Fatal(err)
		}
		sum := d.purge(t, d.operator(t, "alice"), func(p *PurgeOptions) {
			p.Forget = forget
			p.Match = func(lambdaidem.Record) bool {
				d.remove(t, "k")
				return true
			}
		})
		if sum.Purged != 1 || sum.Changed != 0 || d.items(t) != 0 {
			t.Errorf("forget=%v: it says %+v, and left %d items", forget, sum, d.items(t))
		}
	}
}

// A purge that forgets a released record replaces its token. After a lost reply, that must not look
// like a change by somebody else.
func TestO2_ForgettingSurvivesALostReply(t *testing.T) {
	d := openDesk(t)
	_, _ = d.do(t, d.guard, "k", func(context.Context) (string, error) { return "", errLater })
	client, w := over(d.client)
	o, err := New(client, d.table, patient, quick).Operator("alice", "a reason")
	if err != nil {
		t.Fatal(err)
	}
	w.after("UpdateItem", loseReply)
	if sum := d.purge(t, o, func(p *PurgeOptions) { p.Forget = true }); sum.Purged != 1 || sum.Changed != 0 {
		t.Errorf("it says %+v", sum)
	}
}

// The table may have items of other tools. A purge leaves them alone.
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

// A released record is taken over after the purge has read it and before the purge writes it. It
// stays in progress.
func TestO2_PurgeNeverTouchesWhatBeganMeanwhile(t *testing.T) {
	d := openDesk(t)
	_, _ = d.do(t, d.guard, "k", func(context.Context) (string, error) { return "", errLater })
	again := func(lambdaidem.Record) bool { // called when the page has been read and nothing has been written yet
		d.die(t, "k")
		return true
	}
	sum := d.purge(t, d.operator(t, "alice"), func(p *PurgeOptions) { p.Forget, p.Match = true, again })
	if sum.Changed != 1 || sum.Purged != 0 {
		t.Errorf("it says %+v", sum)
	}
	if inspected := d.inspect(t, d.id("k")); inspected.Record.State != lambdaidem.InProgress {
		t.Errorf("the record is %+v", inspected.Record)
	}
}

// A replay during a purge gets the whole answer, or an error that says to try again or that there
// is no answer. It never gets a part of an answer.
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
			got, err := lambdaidem.Do(context.Background(), d.guard, lambdaidem.Call{Operation: "pay", Key: "k"}, answerOf("again")) //nolint:usetesting // the call may outlive the test's context
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

// If a purge dies after it has changed a record and before it has deleted all parts, the next purge
// finishes the work.
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
			if n := d.items(t); n != 1 {
				t.Errorf("%d items are left; want the record", n)
			}
		})
	}
}

// Pace gets all consumed units, and its error ends the purge.
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
	if sum := d.purge(t, d.operator(t, "alice"), func(p *PurgeOptions) { p.Forget, p.After = true, last.After }); sum.Purged+7 != 20 {
		t.Errorf("resumed, it says %+v", sum)
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
	for inspected, err := range d.store.ScanLeases(t.Context(), func(o *ScanOptions) { o.PageSize = 5 }) {
		if err != nil {
			t.Fatal(err)
		}
		found[inspected.Record.ID] = inspected.Record.LeaseLiveAt(inspected.At())
	}
	if diff := cmp.Diff(map[string]bool{d.id("dead"): false, d.id("live"): true}, found); diff != "" {
		t.Errorf("want - found +:\n%s", diff)
	}
	for _, err := range d.store.ScanLeases(t.Context()) { // the loop may stop early
		if err != nil {
			t.Error(err)
		}
		break
	}
}

// A retry takes over a forgotten record. If its record expires no later than a purge would make it
// expire, a second purge forgets it all the same.
func TestO2_ARecordThatRanAgainForAShortTimeIsForgottenAgain(t *testing.T) {
	forget := func(p *PurgeOptions) { p.Forget = true }
	for name, end := range map[string]func(context.Context) (string, error){
		"completed": answerOf("alice lives here"),
		"released": func(ctx context.Context) (string, error) {
			_, _ = lambdaidem.Step(ctx, "card", answerOf("alice's card"))
			return "", errLater
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := openDesk(t)
			_, _ = d.do(t, d.guard, "k", func(context.Context) (string, error) { return "", errLater })
			d.purge(t, d.operator(t, "alice"), forget)
			short := d.guard.With(func(o *lambdaidem.Options) { o.TTL = lambdaidem.MinTTL })
			_, _ = d.do(t, short, "k", end)
			if inspected := d.inspect(t, d.id("k")); inspected.Record.Attempt != 2 {
				t.Fatalf("the retry left %+v", inspected.Record)
			}
			if sum := d.purge(t, d.operator(t, "alice"), forget); sum.Purged != 1 || sum.Before != 0 {
				t.Errorf("the second purge says %+v", sum)
			}
			if rec := d.inspect(t, d.id("k")).Record; len(rec.Result.Value)+len(rec.Steps) > 0 {
				t.Errorf("the record still holds %+v", rec)
			}
			if sum := d.purge(t, d.operator(t, "alice"), forget); sum.Purged != 0 || sum.Before != 1 {
				t.Errorf("the third purge says %+v", sum)
			}
		})
	}
}

// The operator's clock is an hour behind the database's. A scan yields each record with the
// database's time, even if it yields the record long after it has read it.
func TestO2_ScannedLeasesHaveTheDatabasesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openShifted(t)
		d.offset = time.Hour
		d.die(t)
		n := 0
		for inspected, err := range New(d.client, d.table).ScanLeases(t.Context(), func(o *ScanOptions) {
			o.Pace = func(context.Context, float64) error { time.Sleep(10 * time.Minute); return nil }
		}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
			time.Sleep(time.Minute)
			if behind := d.now().Sub(inspected.At()); behind < 0 || behind > time.Second {
				t.Errorf("At is %v behind the database's clock", behind)
			}
		}
		if n != 1 {
			t.Errorf("found %d leases; want 1", n)
		}
	})
}

// An operator has released a record, and the next attempt has died too. A scan says both.
func TestO2_ScannedLeasesHaveTheirOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openShifted(t)
		d.dieAndBeReleased(t)
		d.die(t)
		for inspected, err := range New(d.client, d.table).ScanLeases(t.Context()) {
			if err != nil || len(inspected.Operations) != 1 || inspected.Operations[0].What != OperationReleased {
				t.Errorf("a scan yields %+v, %v", inspected, err)
			}
		}
	})
}
