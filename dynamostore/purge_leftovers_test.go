package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// leaveParts runs an attempt that writes the parts of its answer and whose completion is lost. It
// returns the number of parts.
func (d *desk) leaveParts(t *testing.T, optFns ...func(*lambdaidem.Options)) int {
	t.Helper()
	client, _ := overSelective(d.client, func(r asked) fault {
		if r.operation == "UpdateItem" || r.operation == "TransactWriteItems" {
			return loseRequest
		}
		return nil
	})
	guard := lambdaidem.New(New(client, d.table, quick, func(o *Options) { o.CompressFrom, o.Attempts = 1<<30, 1 }), append([]func(*lambdaidem.Options){func(o *lambdaidem.Options) {
		o.Namespace, o.Observer, o.Clock = "shop", lambdaidem.Discard, func() time.Time { return d.clock }
	}}, optFns...)...)
	before := d.items(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // the attempt retries until this time
	defer cancel()
	_, err := lambdaidem.Do(ctx, guard, lambdaidem.Call{Operation: "pay", Key: "k"}, answerOf("alice lives in "+strings.Repeat("x", 600<<10)))
	if !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
		t.Fatalf("the attempt got %v; want its outcome to be unknown", err)
	}
	const parts = 3
	if n := d.items(t) - before; n < parts {
		t.Fatalf("the attempt left %d items; want %d parts at least", n, parts)
	}
	return parts
}

// An attempt writes its parts and dies. The next attempt completes the record with another answer,
// so no record refers to the parts.
func TestO2_PurgeDeletesPartsOfAnAttemptThatDied(t *testing.T) {
	d := openDesk(t)
	left := d.leaveParts(t)
	d.clock = d.clock.Add(2 * time.Minute) // after the end of the lease
	if _, err := d.do(t, d.guard, "k", answerOf("small")); err != nil {
		t.Fatal(err)
	}
	if n := d.items(t); n != 1+left {
		t.Fatalf("there are %d items; want a record and %d parts", n, left)
	}
	ours := func(p *PurgeOptions) {
		p.Match = func(rec lambdaidem.Record) bool { return strings.Contains(rec.Scope, " pay ") }
	}
	dry := d.purge(t, d.operator(t, "alice"), ours, func(p *PurgeOptions) { p.DryRun = true })
	if dry.Orphans != left || dry.Parts != 0 || dry.Matched != 1 || d.items(t) != 1+left {
		t.Errorf("a dry run says %+v", dry)
	}
	other := d.purge(t, d.operator(t, "alice"), func(p *PurgeOptions) {
		p.Match = func(rec lambdaidem.Record) bool { return strings.Contains(rec.Scope, " refund ") }
	})
	if other.Orphans+other.Parts+other.KeptParts != 0 {
		t.Errorf("a purge of another scope says %+v", other)
	}
	sum := d.purge(t, d.operator(t, "alice"), ours)
	if sum.Orphans != left || sum.Parts != left || sum.Purged != 1 || sum.KeptParts != 0 {
		t.Errorf("it says %+v", sum)
	}
	if n := d.items(t); n != 1 {
		t.Errorf("%d items are left; want the record alone", n)
	}
}

// The attempt that wrote the parts may still complete the record.
func TestO2_PurgeKeepsPartsOfALeaseHolder(t *testing.T) {
	d := openDesk(t)
	d.clock = time.Now().Add(-24 * time.Hour)
	forever := func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold } // the record has no TTL, because DynamoDB Local would delete it
	left := d.leaveParts(t, forever)
	sum := d.purge(t, d.operator(t, "alice"))
	if sum.KeptParts != left || sum.Parts != 0 || sum.InProgress != 1 || d.items(t) != 1+left {
		t.Errorf("it says %+v", sum)
	}
}

// An optimistic attempt has no record until it commits. Its parts are deleted once the commit can
// no longer arrive.
func TestO2_PurgeDeletesPartsWithoutARecordOnceTheyAreOld(t *testing.T) {
	for age, deleted := range map[time.Duration]bool{50 * time.Minute: false, 70 * time.Minute: true} {
		t.Run(age.String(), func(t *testing.T) {
			d := openDesk(t)
			d.clock = time.Now().Add(-age)
			left := d.leaveParts(t, func(o *lambdaidem.Options) { o.Optimistic = true })
			want := PurgeProgress{Looked: left, KeptParts: left}
			if deleted {
				want = PurgeProgress{Looked: left, Parts: left, Orphans: left}
			}
			sum := d.purge(t, d.operator(t, "alice"))
			sum.Units, sum.Elapsed = 0, 0
			if sum != want {
				t.Errorf("it says %+v; want %+v", sum, want)
			}
			if n := d.items(t); n != want.KeptParts {
				t.Errorf("%d items are left; want %d", n, want.KeptParts)
			}
		})
	}
}

// The next attempt on a released record writes parts of its own, so no record will refer to the old
// ones.
func TestO2_PurgeDeletesOldPartsOfAReleasedRecord(t *testing.T) {
	d := openDesk(t)
	d.clock = time.Now().Add(-2 * time.Hour)
	left := d.leaveParts(t, func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold })
	if _, err := d.operator(t, "alice").Release(t.Context(), d.inspect(t, d.id("k"))); err != nil {
		t.Fatal(err)
	}
	if sum := d.purge(t, d.operator(t, "alice")); sum.Orphans != left || sum.KeptParts != 0 {
		t.Errorf("it says %+v", sum)
	}
	if n := d.items(t); n != 1 {
		t.Errorf("%d items are left; want the record alone", n)
	}
}

// The item under the id of the part's record belongs to another program.
func TestO2_PurgeKeepsPartsBesideAForeignItem(t *testing.T) {
	d := openDesk(t)
	d.clock = time.Now().Add(-2 * time.Hour)
	left := d.leaveParts(t, func(o *lambdaidem.Options) { o.Optimistic = true })
	putItem(t, d.client, d.table, attributes{attrID: str(d.id("k")), "theirs": str("x")})
	if sum := d.purge(t, d.operator(t, "alice")); sum.KeptParts != left || sum.Foreign != 1 || sum.Parts != 0 {
		t.Errorf("it says %+v", sum)
	}
}

// leaveSteps leaves three records with the result of a step: released, dead and live.
func (d *desk) leaveSteps(t *testing.T) {
	t.Helper()
	_, err := d.do(t, d.guard, "released", func(ctx context.Context) (string, error) {
		if _, err := lambdaidem.Step(ctx, "card", func(context.Context) (string, error) { return "alice paid 10", nil }); err != nil {
			return "", err
		}
		return "", errLater
	})
	if !errors.Is(err, errLater) {
		t.Fatal(err)
	}
	d.die(t, "dead")
	d.clock = time.Now()
	d.die(t, "live")
}

func TestO2_PurgeReportsStepsThatItKeeps(t *testing.T) {
	d := openDesk(t)
	d.leaveSteps(t)
	if sum := d.purge(t, d.operator(t, "alice")); sum.KeptSteps != 3 || sum.Matched != 0 || sum.InProgress != 2 {
		t.Errorf("it says %+v", sum)
	}
	for key, state := range map[string]lambdaidem.State{"released": lambdaidem.Released, "dead": lambdaidem.InProgress, "live": lambdaidem.InProgress} {
		if rec := d.inspect(t, d.id(key)).Record; rec.State != state || len(rec.Steps) != 1 {
			t.Errorf("%s is %+v", key, rec)
		}
	}
}

// Without its steps, a retry would pay again. So the record is completed, and no retry runs.
func TestO2_PurgeErasesStepsAndClosesTheirRecords(t *testing.T) {
	d := openDesk(t)
	d.leaveSteps(t)
	steps := func(p *PurgeOptions) { p.Steps = true }
	dry := d.purge(t, d.operator(t, "alice"), steps, func(p *PurgeOptions) { p.DryRun = true })
	if dry.Matched != 2 || dry.Purged != 0 || dry.OnlyErased != 0 || dry.KeptSteps != 1 || dry.Undecided != 1 {
		t.Errorf("a dry run says %+v", dry)
	}
	sum := d.purge(t, d.operator(t, "alice"), steps)
	if sum.Matched != 2 || sum.Purged != 2 || sum.OnlyErased != 0 || sum.KeptSteps != 1 || sum.InProgress != 1 {
		t.Errorf("it says %+v", sum)
	}
	d.runs = 0
	for _, key := range []string{"released", "dead"} {
		inspected := d.inspect(t, d.id(key))
		if rec := inspected.Record; rec.State != lambdaidem.Completed || len(rec.Steps) != 0 || rec.Expires.Before(inspected.Now.Add(23*time.Hour)) {
			t.Errorf("%s is %+v", key, rec)
		}
		if ops := inspected.Operations; len(ops) != 1 || ops[0].What != OperationErased || ops[0].By != "alice" || ops[0].Token != inspected.Record.Token {
			t.Errorf("%s keeps %+v", key, ops)
		}
		if _, err := d.do(t, d.guard, key, answerOf("again")); !errors.Is(err, lambdaidem.ErrAnswerUnavailable) || d.runs != 0 {
			t.Errorf("a retry of %s got %v after %d runs", key, err, d.runs)
		}
	}
	if rec := d.inspect(t, d.id("live")).Record; rec.State != lambdaidem.InProgress || len(rec.Steps) != 1 {
		t.Errorf("the live record is %+v", rec)
	}
}

// Nobody knows how long retries of a held record may arrive. After an expiry, a retry would run
// without the steps and pay again.
func TestL6_PurgeOfStepsGivesAHeldRecordNoExpiry(t *testing.T) {
	d := openDesk(t)
	held := d.guard.With(func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold })
	_, _ = d.do(t, held, "k", func(ctx context.Context) (string, error) {
		_, err := lambdaidem.Step(ctx, "card", func(context.Context) (int, error) { return 7, nil })
		return "", lambdaidem.Uncertain(errors.Join(errLater, err))
	})
	if sum := d.purge(t, d.operator(t, "alice"), func(p *PurgeOptions) { p.Steps = true }); sum.Purged != 1 {
		t.Errorf("it says %+v", sum)
	}
	if rec := d.inspect(t, d.id("k")).Record; rec.State != lambdaidem.Completed || len(rec.Steps) != 0 || !rec.Expires.IsZero() {
		t.Errorf("the record is %+v", rec)
	}
}

// The lease of a record counts as live for MaxSkew after its end.
func TestO2_PurgeOfStepsAllowsForClocks(t *testing.T) {
	d := openDesk(t)
	d.die(t, "k") // its lease ended nine minutes ago
	sum := d.purge(t, d.operator(t, "alice", func(o *OperatorOptions) { o.MaxSkew = time.Hour }), func(p *PurgeOptions) { p.Steps = true })
	if sum.Purged != 0 || sum.InProgress != 1 || sum.KeptSteps != 1 {
		t.Errorf("it says %+v", sum)
	}
}

// If an attempt takes over a record after the purge has read it and before the purge writes it, the
// record keeps its steps.
func TestO2_PurgeOfStepsNeverTouchesWhatBeganMeanwhile(t *testing.T) {
	d := openDesk(t)
	_, _ = d.do(t, d.guard, "k", func(ctx context.Context) (string, error) {
		_, _ = lambdaidem.Step(ctx, "card", func(context.Context) (int, error) { return 7, nil })
		return "", errLater
	})
	sum := d.purge(t, d.operator(t, "alice"), func(p *PurgeOptions) {
		p.Steps = true
		p.Match = func(lambdaidem.Record) bool { // called when the page has been read and nothing has been written yet
			d.die(t, "k")
			return true
		}
	})
	if rec := d.inspect(t, d.id("k")).Record; sum.Changed != 1 || sum.Purged != 0 || rec.State != lambdaidem.InProgress || len(rec.Steps) != 1 {
		t.Errorf("it says %+v, and the record is %+v", sum, rec)
	}
}

// A purge that is resumed begins with the page that failed.
func TestO2_PurgeResumesBeforeAFailedPage(t *testing.T) {
	d := openDesk(t)
	for _, key := range []string{"a", "b", "c"} {
		if _, err := d.do(t, d.guard, key, answerOf("x")); err != nil {
			t.Fatal(err)
		}
	}
	client, w := over(d.client)
	w.after("UpdateItem", loseRequest)
	o, err := New(client, d.table, quick, func(o *Options) { o.Attempts = 1 }).Operator("alice", "why")
	if err != nil {
		t.Fatal(err)
	}
	var last PurgeProgress
	for last, err = range o.Purge(t.Context(), func(p *PurgeOptions) { p.PageSize = 1 }) {
	}
	if err == nil || last.Looked != 0 || last.After != "" {
		t.Fatalf("it ended with %v and %+v; want an error, and no progress", err, last)
	}
	if sum := d.purge(t, d.operator(t, "alice"), func(p *PurgeOptions) { p.After = last.After }); sum.Purged != 3 {
		t.Errorf("resumed, it says %+v", sum)
	}
}

// Match may select parts but not their record, for example by age. Parts to which the record refers
// stay, even if a purge of the record was interrupted.
func TestO2_PurgeKeepsPartsThatARecordNames(t *testing.T) {
	d := openDesk(t, func(o *Options) { o.CompressFrom = 1 << 30 })
	d.clock = time.Now().Add(-2 * time.Hour)
	if _, err := d.do(t, d.guard, "k", answerOf(strings.Repeat("x", 600<<10))); err != nil {
		t.Fatal(err)
	}
	var matched []lambdaidem.Record
	parts := func(p *PurgeOptions) {
		p.Match = func(rec lambdaidem.Record) bool {
			if rec.State == lambdaidem.Absent {
				matched = append(matched, rec)
			}
			return rec.State == lambdaidem.Absent
		}
	}
	keeps := func(when string) {
		t.Helper()
		if sum := d.purge(t, d.operator(t, "alice"), parts); sum.Parts+sum.Orphans+sum.KeptParts != 0 || d.items(t) != 4 {
			t.Errorf("%s: it says %+v, and left %d items", when, sum, d.items(t))
		}
	}
	keeps("completed")
	rec := d.inspect(t, d.id("k")).Record
	for _, part := range matched {
		if part.ID != rec.ID || part.Scope != rec.Scope || part.Token != rec.Token || !part.StartedAt.Equal(rec.CompletedAt) {
			t.Errorf("Match was asked of %+v", part)
		}
	}
	if len(matched) != 3 {
		t.Errorf("Match was asked of %d parts; want 3", len(matched))
	}
	client, w := over(d.client)
	w.after("DeleteItem", loseRequest)
	o, err := New(client, d.table, quick, func(o *Options) { o.Attempts = 1 }).Operator("alice", "why")
	if err != nil {
		t.Fatal(err)
	}
	for _, err = range o.Purge(t.Context()) {
	}
	if err == nil || d.inspect(t, d.id("k")).Record.Result.Apart != nil {
		t.Fatalf("the purge was to be interrupted; it ended with %v", err)
	}
	keeps("being erased")
}

// An expired record that DynamoDB has not deleted yet counts as absent, because an optimistic
// attempt may be about to replace it.
func TestO2_PartsOfAnExpiredRecordAreNoOrphansWhileTheyAreYoung(t *testing.T) {
	itm := claimed(claim)
	itm.finish(result)
	part := storedPart{id: itm.ID + "#1#x", record: itm.ID, token: "another", writtenAt: now}
	const skew = 2 * time.Second
	if !part.isOrphan(itm, result.Expires.Add(-skew-2*time.Second), skew) {
		t.Error("the record is completed with another answer, and the part is no orphan")
	}
	for _, left := range []time.Duration{0, time.Second, skew + time.Second} {
		part.writtenAt = result.Expires.Add(-left)
		if part.isOrphan(itm, part.writtenAt, skew) {
			t.Errorf("the record expires in %v, and a part written just now is an orphan", left)
		}
	}
}

// An optimistic attempt whose clock is ahead replaces a record that has not expired by
// DynamoDB's clock. A purge that runs after the attempt has written the parts of its answer,
// and before it commits, must leave those parts.
func TestO2_PurgeLeavesThePartsOfAnOptimisticAttemptAtTheRecordsExpiry(t *testing.T) {
	d := openShifted(t)
	purged := PurgeProgress{}
	store := New(d.before("TransactWriteItems", 2, func() { // before the transaction of the second attempt
		for p, err := range d.operator(t).Purge(t.Context()) {
			if err != nil {
				t.Error(err)
			}
			purged = p
		}
	}), d.table, func(o *Options) { o.CompressFrom = 1 << 30 })
	g := d.guard(store, optimistic, func(o *lambdaidem.Options) {
		o.Clock = func() time.Time { return d.now().Add(1900 * time.Millisecond) }
	})
	large := strings.Repeat("answer ", 6000)
	if _, err := d.pay(t, g, answerOf(large)); err != nil {
		t.Fatal(err)
	}
	d.offset += d.inspect(t).Record.Expires.Sub(d.now()) - 1800*time.Millisecond // by the attempt's clock, the record has expired
	if _, err := d.pay(t, g, answerOf(large+"2")); err != nil {
		t.Fatal(err)
	}
	if purged.KeptParts != 1 || purged.Orphans != 0 {
		t.Errorf("the purge says %+v; want it to keep the new part", purged)
	}
	d.offset += 10 * time.Second
	if got, err := d.pay(t, g, answerOf("again")); err != nil || got != large+"2" {
		t.Errorf("a retry got %.20q, %v; want the second answer", got, err)
	}
}

// PurgeOptions.Steps does not affect records without steps.
func TestO2_PurgeOfStepsLeavesRecordsWithoutSteps(t *testing.T) {
	d := openDesk(t)
	_, _ = d.do(t, d.guard, "k", func(context.Context) (string, error) { return "", errLater })
	if sum := d.purge(t, d.operator(t, "alice"), func(p *PurgeOptions) { p.Steps = true }); sum.Matched+sum.Purged+sum.KeptSteps != 0 {
		t.Errorf("it says %+v", sum)
	}
	if got, err := d.do(t, d.guard, "k", answerOf("again")); got != "again" || err != nil {
		t.Errorf("a retry got %q, %v", got, err)
	}
}

// With Forget, a released record with steps is completed and expires. With Steps, so is the record
// of a dead attempt, but it keeps its expiry.
func TestO2_PurgeForgetsReleasedRecordsWithTheirSteps(t *testing.T) {
	d := openDesk(t)
	d.leaveSteps(t)
	if dry := d.purge(t, d.operator(t, "alice"), func(p *PurgeOptions) { p.Steps, p.Forget, p.DryRun = true, true, true }); dry.Matched != 2 || dry.OnlyErased != 1 {
		t.Errorf("the dry run says %+v", dry)
	}
	sum := d.purge(t, d.operator(t, "alice"), func(p *PurgeOptions) { p.Steps, p.Forget = true, true })
	if sum.Purged != 2 || sum.OnlyErased != 1 || sum.KeptSteps != 1 || sum.InProgress != 1 || d.items(t) != 3 {
		t.Errorf("it says %+v, and left %d items; want the dead record, closed, the live one, and the released one, which expires", sum, d.items(t))
	}
	if rec := d.inspect(t, d.id("released")).Record; len(rec.Steps) > 0 || rec.Expires.After(time.Now().Add(lambdaidem.MinTTL+time.Minute)) {
		t.Errorf("the released record is %+v", rec)
	}
}

// An eventually consistent scan could miss an answer that was just stored.
func TestO2_PurgeReadsConsistently(t *testing.T) {
	d := openDesk(t)
	var scans []string
	client := dynamodb.New(d.client.Options(), func(o *dynamodb.Options) {
		next := o.HTTPClient
		o.HTTPClient = doer(func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			scans = append(scans, string(body))
			r.Body = io.NopCloser(bytes.NewReader(body))
			return next.Do(r)
		})
	})
	o, err := New(client, d.table, patient).Operator("alice", "why")
	if err != nil {
		t.Fatal(err)
	}
	d.purge(t, o)
	if len(scans) != 1 || !strings.Contains(scans[0], `"ConsistentRead":true`) {
		t.Errorf("it sent %q; want one consistent scan", scans)
	}
}

// The first request that writes a part is delayed, and its retry succeeds. The answer is purged.
// Then the first request arrives and writes the part again. A purge an hour later deletes the part.
func TestO2_ARepeatedPurgeDeletesAPartThatCameBack(t *testing.T) {
	for name, forget := range map[string]bool{"erased": false, "forgotten": true} {
		t.Run(name, func(t *testing.T) {
			d := openShifted(t)
			var late func()
			store := New(d.through(func(_ *http.Request, body []byte, send func() (*http.Response, error)) (*http.Response, error) {
				if late == nil && bytes.Contains(body, []byte(`"part"`)) {
					late = func() {
						if resp, err := send(); err == nil {
							_ = resp.Body.Close()
						}
					}
					return nil, errors.New("connection reset by peer")
				}
				return send()
			}), d.table, quick, func(o *Options) { o.CompressFrom = 1 << 30 })
			if _, err := d.pay(t, d.guard(store), answerOf(strings.Repeat("Jane Doe ", 5000))); err != nil {
				t.Fatal(err)
			}
			purge := func() (last PurgeProgress) {
				for p, err := range d.operator(t).Purge(t.Context(), func(p *PurgeOptions) { p.Forget = forget }) {
					if err != nil {
						t.Fatal(err)
					}
					last = p
				}
				return last
			}
			if sum := purge(); sum.Purged != 1 || sum.Parts != 1 {
				t.Fatalf("the first purge says %+v", sum)
			}
			late()
			d.offset += time.Hour + time.Second
			if sum := purge(); sum.Orphans != 1 {
				t.Errorf("the second purge says %+v; want the part to be deleted", sum)
			}
			if sum := purge(); sum.Parts+sum.KeptParts != 0 {
				t.Errorf("the third purge says %+v; want no part to be left", sum)
			}
		})
	}
}

// A retry of a request whose handler made a guarded call needs the stored answer of that call.
func TestO2_PurgeCountsRequestsThatNeedTheAnswerOfAnInnerCall(t *testing.T) {
	d := openDesk(t)
	for _, key := range []string{"with a call", "without", "done since"} {
		_, err := d.do(t, d.guard, key, func(ctx context.Context) (string, error) {
			if key == "without" {
				return "", errLater
			}
			_, err := lambdaidem.Do(ctx, d.guard, lambdaidem.Call{Operation: "charge", Key: key}, func(context.Context) (int, error) { return 1, nil })
			return "", errors.Join(err, errLater)
		})
		if !errors.Is(err, errLater) {
			t.Fatal(err)
		}
	}
	if _, err := d.do(t, d.guard, "done since", func(context.Context) (string, error) { return "done", nil }); err != nil {
		t.Fatal(err)
	}
	if sum := d.purge(t, d.operator(t, "alice")); sum.InnerCalls != 1 || sum.Purged != 3 {
		t.Errorf("it says %+v", sum)
	}
}

// The handler of a released record has made a guarded call. If a purge erases the record's steps, it
// also completes the record. No retry runs then, so no retry needs the stored answer of that call,
// and PurgeProgress.InnerCalls does not count the record.
func TestO2_PurgeCountsNoInnerCallOfARecordThatItCompletes(t *testing.T) {
	for name, option := range map[string]func(*PurgeOptions){
		"steps":   func(p *PurgeOptions) { p.Steps = true },
		"forget":  func(p *PurgeOptions) { p.Forget = true },
		"dry run": func(p *PurgeOptions) { p.Steps, p.DryRun = true, true },
	} {
		t.Run(name, func(t *testing.T) {
			d := openShifted(t)
			g := d.guard(New(d.client, d.table))
			_, err := d.pay(t, g, func(ctx context.Context) (string, error) {
				_, stepErr := lambdaidem.Step(ctx, "reserve", func(context.Context) (int, error) { return 7, nil })
				_, callErr := lambdaidem.Do(ctx, g, lambdaidem.Call{Operation: "charge", Key: "k"}, func(context.Context) (int, error) { return 1, nil })
				return "", errors.Join(stepErr, callErr, errLater)
			})
			if !errors.Is(err, errLater) || d.inspect(t).Record.Bound != lambdaidem.BoundByInnerCall {
				t.Fatalf("%v, %+v", err, d.inspect(t).Record)
			}
			for sum, err := range d.operator(t).Purge(t.Context(), option) {
				if err != nil || sum.InnerCalls != 0 || sum.KeptSteps != 0 {
					t.Errorf("it says %+v, %v", sum, err)
				}
			}
		})
	}
}

// A released record whose handler has completed a step is forgotten. A retry that comes before
// the record expires does not run without the step. The record does not last longer than it
// would have.
func TestO2_AForgottenRecordWithStepsDoesNotRunBeforeItExpires(t *testing.T) {
	for _, ttl := range []time.Duration{24 * time.Hour, lambdaidem.MinTTL} {
		d := openShifted(t)
		g := d.guard(New(d.client, d.table), func(o *lambdaidem.Options) { o.TTL = ttl })
		charged := 0
		pay := func() error {
			_, err := d.pay(t, g, func(ctx context.Context) (string, error) {
				_, err := lambdaidem.Step(ctx, "charge", func(context.Context) (int, error) { charged++; return 1, nil })
				return "", lambdaidem.Retryable(errors.Join(err, errors.New("later")))
			})
			return err
		}
		_ = pay()
		before := d.inspect(t).Record.Expires
		var last PurgeProgress
		for range 2 { // the second purge finds nothing to do
			for progress, err := range d.operator(t).Purge(t.Context(), func(o *PurgeOptions) { o.Forget = true }) {
				if last = progress; err != nil {
					t.Fatal(err)
				}
			}
		}
		if last.Matched != 1 || last.Before != 1 || last.Purged != 0 {
			t.Errorf("the second purge reports %+v", last)
		}
		if err := pay(); !errors.Is(err, lambdaidem.ErrAnswerUnavailable) || charged != 1 {
			t.Errorf("the retry got %v; charged %d times", err, charged)
		}
		after := d.inspect(t)
		if left := after.Record.Expires.Sub(after.Now); left > lambdaidem.MinTTL+time.Minute || after.Record.Expires.After(before) || ttl > time.Hour && left < lambdaidem.MinTTL {
			t.Errorf("with a TTL of %v, the record expires in %v", ttl, left)
		}
	}
}

// A purge must not claim that a request was carried out: its answer may have been a refusal, or an
// operator may have ended its record without knowing.
func TestO2_APurgeSaysNothingFalseOfWhatItErases(t *testing.T) {
	d := openDesk(t)
	d.leaveSteps(t)
	_, _ = d.do(t, d.guard, "declined", func(context.Context) (string, error) { return "", lambdaidem.Reject(402, "declined", "No.") })
	d.purge(t, d.operator(t, "alice"), func(p *PurgeOptions) { p.Steps = true })
	d.purge(t, d.operator(t, "alice"), func(p *PurgeOptions) { p.Forget = true })
	for key, want := range map[string]string{"declined": "the request was answered", "released": "was not finished", "dead": "was not finished"} {
		_, err := d.do(t, d.guard, key, answerOf("again"))
		if !errors.Is(err, lambdaidem.ErrAnswerUnavailable) || strings.Contains(err.Error(), "carried out") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: a retry got %v", key, err)
		}
	}
}

// A handler's own failure may have the code of an answer that is unavailable. A purge erases its
// text like any other.
func TestO2_PurgeErasesAFailureThatHasTheCodeOfAnUnavailableAnswer(t *testing.T) {
	d := openShifted(t)
	g := d.guard(New(d.client, d.table))
	_, _ = d.pay(t, g, func(context.Context) (string, error) {
		return "", lambdaidem.Permanent(fmt.Errorf("charge alice: %w", lambdaidem.Reject(500, lambdaidem.ErrAnswerUnavailable, "")))
	})
	if f := d.inspect(t).Record.Result.Failure; f == nil || f.Code != lambdaidem.ErrAnswerUnavailable || !strings.Contains(f.Message, "alice") {
		t.Fatalf("the record has %+v", f)
	}
	for sum, err := range d.operator(t).Purge(t.Context()) {
		if err != nil || sum.Purged != 1 {
			t.Errorf("the purge says %+v, %v", sum, err)
		}
	}
	if f := d.inspect(t).Record.Result.Failure; f == nil || strings.Contains(f.Message, "alice") {
		t.Errorf("the purge left %+v", f)
	}
}

// expireSteps leaves two records with the result of a step, which expired half an hour ago: one was
// released, and the attempt of the other died. DynamoDB has not deleted their items yet.
func (d *desk) expireSteps(t *testing.T) {
	t.Helper()
	d.clock = time.Now().Add(-24*time.Hour - 30*time.Minute)
	_, _ = d.do(t, d.guard, "released", func(ctx context.Context) (string, error) {
		_, err := lambdaidem.Step(ctx, "card", func(context.Context) (string, error) { return "alice paid 10", nil })
		return "", errors.Join(errLater, err)
	})
	d.die(t, "dead")
}

// A purge erases the steps of expired records too, because DynamoDB may delete their items days
// late. The records stay expired, so a retry runs as the first.
func TestO2_PurgeErasesTheStepsOfExpiredRecords(t *testing.T) {
	for name, c := range map[string]struct {
		steps, forget bool
		purged        []string
	}{
		"steps":            {steps: true, purged: []string{"dead", "released"}},
		"forget":           {forget: true, purged: []string{"released"}},
		"steps and forget": {steps: true, forget: true, purged: []string{"dead", "released"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := openDesk(t)
			d.expireSteps(t)
			before := map[string]lambdaidem.Record{}
			for _, key := range []string{"dead", "released"} {
				before[key] = d.inspect(t, d.id(key)).Record
			}
			options := func(p *PurgeOptions) { p.Steps, p.Forget = c.steps, c.forget }
			dry := d.purge(t, d.operator(t, "alice"), options, func(p *PurgeOptions) { p.DryRun = true })
			if dry.Matched != len(c.purged) || dry.KeptSteps != 2-len(c.purged) || dry.OnlyErased != 0 {
				t.Errorf("the dry run says %+v", dry)
			}
			sum := d.purge(t, d.operator(t, "alice"), options)
			if sum.Purged != len(c.purged) || sum.Changed != 0 || sum.KeptSteps != 2-len(c.purged) || sum.OnlyErased != 0 {
				t.Errorf("it says %+v", sum)
			}
			for _, key := range c.purged {
				rec := d.inspect(t, d.id(key)).Record
				if len(rec.Steps) != 0 || !rec.Expires.Equal(before[key].Expires) || rec.Token == before[key].Token {
					t.Errorf("%s was %+v, and is %+v", key, before[key], rec)
				}
			}
			for range 2 {
				sum = d.purge(t, d.operator(t, "alice"), options)
			}
			if sum.Purged != 0 || sum.Changed != 0 || sum.Before != len(c.purged) {
				t.Errorf("the third purge says %+v", sum)
			}
			d.clock = time.Now()
			for _, key := range c.purged {
				if got, err := d.do(t, d.guard, key, answerOf("again")); got != "again" || err != nil || d.inspect(t, d.id(key)).Record.Attempt != 1 {
					t.Errorf("a retry of %s got %q, %v", key, got, err)
				}
			}
		})
	}
}

// Between the read and the write of a purge, a new request begins under the key of an expired
// record, or a guard with policy Hold and a slow clock removes the record's expiry, so that it
// waits for an operator. The purge leaves such a record alone.
func TestO2_PurgeOfExpiredStepsNeverTouchesWhatBeganMeanwhile(t *testing.T) {
	for name, meanwhile := range map[string]func(*testing.T, *desk){
		"begun anew": func(t *testing.T, d *desk) {
			d.clock = time.Now()
			d.die(t, "dead")
		},
		"held": func(t *testing.T, d *desk) {
			d.clock = d.clock.Add(time.Hour)
			held := d.guard.With(func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold })
			if _, err := d.do(t, held, "dead", answerOf("again")); !errors.Is(err, lambdaidem.ErrAttemptAbandoned) {
				t.Errorf("a retry got %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := openDesk(t)
			d.clock = time.Now().Add(-24*time.Hour - 30*time.Minute)
			d.die(t, "dead")
			sum := d.purge(t, d.operator(t, "alice"), func(p *PurgeOptions) {
				p.Steps = true
				p.Match = func(lambdaidem.Record) bool { // called when the page has been read and nothing has been written yet
					meanwhile(t, d)
					return true
				}
			})
			if inspected := d.inspect(t, d.id("dead")); sum.Changed != 1 || sum.Purged != 0 || inspected.Record.State != lambdaidem.InProgress || len(inspected.Record.Steps) != 1 || inspected.Record.GoneAt(inspected.Now) {
				t.Errorf("it says %+v, and the record is %+v", sum, inspected.Record)
			}
		})
	}
}

// A purge has erased the steps of an expired record. DynamoDB refuses all requests that were sent
// for this record before and arrive afterwards: without the steps, a retry would repeat their
// effects.
func TestO2_LateRequestsAfterAPurgeOfExpiredSteps(t *testing.T) {
	const ttl = time.Hour
	step := func(ctx context.Context) (string, error) {
		_, err := lambdaidem.Step(ctx, "charge", func(context.Context) (int, error) { return 7, nil })
		return "", errors.Join(lambdaidem.Uncertain(errLater), err)
	}
	purge := func(t *testing.T, s *Store) {
		o, err := s.Operator("alice", "a reason")
		if err != nil {
			t.Fatal(err)
		}
		for sum, err := range o.Purge(t.Context(), func(p *PurgeOptions) { p.Steps = true }) {
			if err != nil || sum.Purged != 1 || sum.Changed != 0 {
				t.Fatalf("the purge says %+v, %v", sum, err)
			}
		}
	}
	short := func(o *lambdaidem.Options) { o.TTL = ttl }

	// The guard's clock is behind, so for the guard the record has not expired yet. The guard reads
	// the record with its steps, the purge erases the steps, and only then the guard's takeover
	// arrives.
	t.Run("a takeover by a slow clock", func(t *testing.T) {
		d := openShifted(t)
		_, _ = d.pay(t, d.guard(New(d.client, d.table), short), step)
		d.offset += ttl + time.Minute
		slow := New(d.before("UpdateItem", 1, func() { purge(t, New(d.client, d.table)) }), d.table)
		_, err := d.pay(t, d.guard(slow, short, func(o *lambdaidem.Options) { o.Clock = func() time.Time { return d.now().Add(-2 * time.Minute) } }),
			func(context.Context) (string, error) { t.Error("the handler runs without its steps"); return "", nil })
		if !errors.Is(err, lambdaidem.ErrAnswerUnavailable) {
			t.Errorf("a retry got %v", err)
		}
	})

	// DynamoDB gets a second copy of a request after the purge.
	for name, operation := range map[string]string{"a claim": "PutItem", "a step": "UpdateItem"} {
		t.Run(name, func(t *testing.T) {
			d := openShifted(t)
			var again func() (*http.Response, error)
			copying := d.through(func(r *http.Request, _ []byte, send func() (*http.Response, error)) (*http.Response, error) {
				if isOperation(r, operation) {
					again = send
				}
				return send()
			})
			_, _ = d.pay(t, d.guard(New(copying, d.table), short), step)
			d.offset += ttl + time.Minute
			purge(t, New(d.client, d.table))
			wantRefused(t, again)
			if rec := d.inspect(t).Record; rec.State != lambdaidem.Completed || len(rec.Steps) != 0 {
				t.Errorf("the record is %+v", rec)
			}
		})
	}

	// A new request has begun under the key when a second copy of the purge's write arrives.
	t.Run("the purge's own write", func(t *testing.T) {
		d := openShifted(t)
		g := d.guard(New(d.client, d.table), short)
		_, _ = d.pay(t, g, step)
		d.offset += ttl + time.Minute
		var again func() (*http.Response, error)
		purge(t, New(d.through(func(r *http.Request, _ []byte, send func() (*http.Response, error)) (*http.Response, error) {
			if isOperation(r, opUpdateItem) {
				again = send
			}
			return send()
		}), d.table))
		_, _ = d.pay(t, g, step)
		wantRefused(t, again)
		if rec := d.inspect(t).Record; rec.State != lambdaidem.InProgress || len(rec.Steps) != 1 {
			t.Errorf("the record is %+v", rec)
		}
	})
}

// wantRefused sends a request again, whose condition must fail.
func wantRefused(t *testing.T, send func() (*http.Response, error)) {
	t.Helper()
	resp, err := send()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.Contains(body, []byte("ConditionalCheckFailedException")) {
		t.Errorf("the late request got %s, %v", body, err)
	}
}

// The reply to the write that erases the steps of an expired record is lost. The repeated write
// finds another token, which is the purge's own.
func TestO2_PurgeOfExpiredStepsSurvivesALostReply(t *testing.T) {
	d := openDesk(t)
	d.clock = time.Now().Add(-24*time.Hour - 30*time.Minute)
	d.die(t, "dead")
	client, w := over(d.client)
	o, err := New(client, d.table, patient, quick).Operator("alice", "a reason")
	if err != nil {
		t.Fatal(err)
	}
	w.after("UpdateItem", loseReply)
	if sum := d.purge(t, o, func(p *PurgeOptions) { p.Steps = true }); sum.Purged != 1 || sum.Changed != 0 {
		t.Errorf("it says %+v", sum)
	}
}

// Two purges erase the steps of the same expired record. The slower one reports that the record has
// changed, and does not add its name to what operators did.
func TestO2_OfTwoPurgesOfExpiredStepsOneWins(t *testing.T) {
	d := openDesk(t)
	d.clock = time.Now().Add(-24*time.Hour - 30*time.Minute)
	d.die(t, "dead")
	steps := func(p *PurgeOptions) { p.Steps = true }
	sum := d.purge(t, d.operator(t, "alice"), steps, func(p *PurgeOptions) {
		p.Match = func(lambdaidem.Record) bool { // called when the page has been read and nothing has been written yet
			d.purge(t, d.operator(t, "bob"), steps)
			return true
		}
	})
	if ops := d.inspect(t, d.id("dead")).Operations; sum.Changed != 1 || sum.Purged != 0 || len(ops) != 1 || ops[0].By != "bob" {
		t.Errorf("it says %+v, and the record keeps %+v", sum, ops)
	}
}

// A record expires between a purge's read and its write. It needs no second purge.
func TestO2_ARecordThatExpiresDuringAPurgeIsNotOnlyErased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openShifted(t)
		d.die(t)
		time.Sleep(time.Until(d.inspect(t).Record.Expires) - time.Minute)
		var sum PurgeProgress
		for progress, err := range d.operator(t).Purge(t.Context(), func(p *PurgeOptions) {
			p.Steps, p.Forget = true, true
			p.Pace = func(context.Context, float64) error { time.Sleep(2 * time.Minute); return nil }
		}) {
			if err != nil {
				t.Fatal(err)
			}
			sum = progress
		}
		if sum.Purged != 1 || sum.OnlyErased != 0 {
			t.Errorf("it says %+v", sum)
		}
	})
}

// A record keeps the changes that operators have made to it, also if a purge erases its steps.
func TestO2_APurgeOfStepsKeepsTheOperations(t *testing.T) {
	for name, forget := range map[string]bool{"erased": false, "forgotten": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := openShifted(t)
				d.dieAndBeReleased(t)
				for _, err := range d.operator(t).Purge(t.Context(), func(p *PurgeOptions) { p.Steps, p.Forget = true, forget }) {
					if err != nil {
						t.Fatal(err)
					}
				}
				want := []OperationKind{OperationReleased, OperationErased}
				if forget {
					want[1] = OperationForgotten
				}
				var got []OperationKind
				for _, did := range d.inspect(t).Operations {
					got = append(got, did.What)
				}
				if !slices.Equal(got, want) {
					t.Errorf("the record keeps %v; want %v", got, want)
				}
			})
		})
	}
}
