package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// neverStarted returns a log line of a function about the claim of rec.
func neverStarted(rec lambdaidem.Record) string {
	return fmt.Sprintf(`{"level":"WARN","outcome":"never_started","record":%q,"token_hash":%q,"error":"{"}`, rec.ID, lambdaidem.TokenHash(rec.Token))
}

// claimed acquires a record whose handler never starts, and returns it. change may change the
// claim.
func (d *desk) claimed(key string, change func(*lambdaidem.Claim)) lambdaidem.Record {
	d.t.Helper()
	who := lambdaidem.Identity{Namespace: "shop", Operation: "reserve", Key: key}
	now := time.Now().Add(-time.Hour)
	c := lambdaidem.Claim{ID: d.guard.RecordID(who), Scope: "shop  reserve ", Token: "token-of-" + key, Now: now, LeaseEnd: now.Add(time.Minute)}
	if change != nil {
		change(&c)
	}
	rec, err := d.store.Acquire(d.t.Context(), c)
	if err != nil {
		d.t.Fatal(err)
	}
	return rec
}

// leases lists and releases a record only if its handler certainly never started.
func TestX10_LeasesReleasesWhatNeverStarted(t *testing.T) {
	d := openDesk(t)
	first, second := d.claimed("first", nil), d.claimed("second", nil)
	ran, again := d.claimed("ran", nil), d.claimed("again", nil)
	stepped := d.claimed("stepped", nil)
	if _, err := d.store.SaveSteps(t.Context(), lambdaidem.Lease{ID: stepped.ID, Token: stepped.Token}, lambdaidem.Steps{"reserve": []byte("1")}, time.Now()); err != nil {
		t.Fatal(err)
	}
	died := d.claimed("died", nil)
	after := d.claimed("died", func(c *lambdaidem.Claim) { c.Token, c.Over, c.Bound = "a takeover", &died, "dead_attempt" })
	earlier := again
	earlier.Token = "of an earlier attempt"
	file := filepath.Join(t.TempDir(), "log")
	lines := "START RequestId {x}\n[Transfers 7] " + neverStarted(first) + "\t" + neverStarted(second) + "\n" + neverStarted(lambdaidem.Record{ID: first.ID, Token: "of an earlier attempt"}) + neverStarted(earlier) + "\n" +
		neverStarted(stepped) + neverStarted(after) + fmt.Sprintf(`{"outcome":"uncertain","record":%q,"token_hash":%q}`, ran.ID, lambdaidem.TokenHash(ran.Token))
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	states := func() map[string]lambdaidem.State {
		all := map[string]lambdaidem.State{}
		for _, rec := range []lambdaidem.Record{first, second, ran, again, stepped, after} {
			now, err := d.store.Get(t.Context(), rec.ID, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			all[rec.ID] = now.State
		}
		return all
	}
	var v leasesView
	d.idem("leases", "--scan", "--never-started", file, "--limit", "2", "-o", "json").want(t, exitDone).into(t, &v)
	if len(v.Leases) != 2 || v.More || v.Leases[0].ID+v.Leases[1].ID != first.ID+second.ID && v.Leases[0].ID+v.Leases[1].ID != second.ID+first.ID {
		t.Fatalf("it lists %+v", v)
	}
	release := []string{"leases", "--scan", "--never-started", file, "--release", "--reason", "the outage"}
	d.typing("no\n", release...).want(t, exitRefused, "Release 2 records")
	d.idem("leases", "--scan", "--never-started", file, "--release", "--yes").want(t, exitUsage, "--reason")
	if held := slices.Collect(maps.Values(states())); slices.Contains(held, lambdaidem.Released) {
		t.Fatalf("without a yes and a reason the records are %v", held)
	}
	d.at(Streams{In: strings.NewReader(lines)}, append(slices.Replace(slices.Clone(release), 3, 4, "-"), "--yes")...).want(t, exitDone, "2 records released")
	for id, state := range states() {
		if want := id == first.ID || id == second.ID; want != (state == lambdaidem.Released) {
			t.Errorf("%s is %s", id, state)
		}
	}
	d.idem(append(release, "--yes")...).want(t, exitDone, "known never to have started")
}

func TestX10_LeasesNeedsLogLinesOfClaims(t *testing.T) {
	d := openDesk(t)
	file := filepath.Join(t.TempDir(), "log")
	for _, text := range []string{"", "no JSON {", `{"outcome":"never_started","record":"r"}`} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		d.idem("leases", "--scan", "--never-started", file).want(t, exitUsage, "token_hash")
	}
	d.idem("leases", "--scan", "--never-started", file+"2").want(t, exitFailed, "no such file")
	d.idem("leases", "--scan", "--release", "--reason", "r", "--yes").want(t, exitUsage, "--release needs --never-started")
}

// A record that has changed since it was listed is left alone, and the others are released.
func TestX10_LeasesReleasesNoRecordThatHasChanged(t *testing.T) {
	d := openDesk(t)
	taken, free := d.claimed("taken", nil), d.claimed("free", nil)
	u := neverStartedFlags{ttl: time.Hour, operatorFlags: operatorFlags{by: "alice", reason: "r"}, confirmation: confirmation{yes: true}}
	var errs strings.Builder
	err := u.releaseAll(t.Context(), &app{Err: printer{&errs}}, d.store, []leaseView{{ID: taken.ID, Token: "another"}, {ID: free.ID, Token: free.Token}})
	if !errors.Is(err, dynamostore.ErrRecordChanged) || !strings.Contains(errs.String(), "1 record released") || !strings.Contains(errs.String(), taken.ID) {
		t.Errorf("%v; it says %s", err, errs.String())
	}
	if rec, err := d.store.Get(t.Context(), taken.ID, time.Now()); err != nil || rec.State != lambdaidem.InProgress {
		t.Errorf("the record that changed is %s, %v", rec.State, err)
	}
}

// After an interruption, records that were not released yet are not counted as released.
func TestX10_LeasesCountsOnlyWhatItReleased(t *testing.T) {
	d := openDesk(t)
	var leases []leaseView
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		rec := d.claimed(key, nil)
		leases = append(leases, leaseView{ID: rec.ID, Token: rec.Token})
	}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	u := neverStartedFlags{ttl: time.Hour, operatorFlags: operatorFlags{by: "alice", reason: "r"}, confirmation: confirmation{yes: true}}
	var errs strings.Builder
	err := u.releaseAll(ctx, &app{Err: printer{&errs}}, d.store, leases)
	if err == nil || !strings.Contains(errs.String(), "0 records released") {
		t.Errorf("%v; it says %s", err, errs.String())
	}
}

// A record bound by an inner call is not selected, because an attempt may have died before that
// call.
func TestX10_ARecordThatMayHideADeadAttemptIsLeftOut(t *testing.T) {
	for bound, want := range map[string]bool{
		"": true, lambdaidem.BoundByDownstreamKey: true, lambdaidem.BoundByInnerCall: false, lambdaidem.BoundByDeadAttempt: false, "a reason of a later version": false,
	} {
		rec := lambdaidem.Record{ID: "r", State: lambdaidem.InProgress, Token: "t", Attempt: 3, Bound: bound}
		choose, err := (&neverStartedFlags{logs: "-"}).choose(t.Context(), strings.NewReader(neverStarted(rec)))
		if err != nil {
			t.Fatal(err)
		}
		if choose(rec) != want {
			t.Errorf("bound by %q: chosen is %t", bound, !want)
		}
	}
}

// outage is a store whose replies are lost, or that throttles every claim.
type outage struct {
	*dynamostore.Store
	loseReplies, throttle bool
}

func (s *outage) Acquire(ctx context.Context, c lambdaidem.Claim) (lambdaidem.Record, error) {
	if s.throttle {
		return lambdaidem.Record{}, &lambdaidem.StoreError{Op: "acquire", Reason: lambdaidem.ReasonThrottled, NotApplied: true, Err: errors.New("throttled")}
	}
	rec, err := s.Store.Acquire(ctx, c)
	if s.loseReplies {
		return lambdaidem.Record{}, &lambdaidem.StoreError{Op: "acquire", Reason: lambdaidem.ReasonTimeout, Err: errors.New("no reply")}
	}
	return rec, err
}

func (s *outage) Release(ctx context.Context, l lambdaidem.Lease, now time.Time) (lambdaidem.Record, error) {
	if s.loseReplies {
		return lambdaidem.Record{}, &lambdaidem.StoreError{Op: "release", Reason: lambdaidem.ReasonTimeout, NotApplied: true, Err: errors.New("no connection")}
	}
	return s.Store.Release(ctx, l, now)
}

// outageUnderHold makes two calls with the key "k" during an outage under Hold, and returns a
// file with the functions' log. The claim of the first call is applied, but its reply is lost, so
// its handler never starts. The second call runs without a lease, because of the guard that
// unguarded returns, and is charged.
func (d *desk) outageUnderHold(unguarded func(lambdaidem.Store, func(*lambdaidem.Options)) *lambdaidem.Guard) string {
	d.t.Helper()
	var log bytes.Buffer
	options := func(o *lambdaidem.Options) {
		o.Namespace, o.Clock, o.Policy = "shop", d.now, lambdaidem.Hold
		o.Observer = lambdaidem.SlogObserver(slog.New(slog.NewJSONHandler(&log, nil)))
	}
	if out := d.pay(lambdaidem.New(&outage{Store: d.store, loseReplies: true}, options), "k", paid); out.StatusCode != 503 || d.runs != 0 {
		d.t.Fatalf("a call whose claim got no reply is answered %+v, after %d runs", out, d.runs)
	}
	if out := d.pay(unguarded(&outage{Store: d.store, throttle: true}, options), "k", paid); out.StatusCode != 201 || d.runs != 1 {
		d.t.Fatalf("the unguarded retry is answered %+v, after %d runs", out, d.runs)
	}
	file := filepath.Join(d.t.TempDir(), "log")
	if err := os.WriteFile(file, log.Bytes(), 0o600); err != nil {
		d.t.Fatal(err)
	}
	return file
}

// A record is held by a claim whose handler never started, but a retry failed open and was
// charged. The record is not released, because the next retry would be charged again.
func TestX10_LeasesReleasesNoRecordForWhichACallFailedOpen(t *testing.T) {
	d := openDesk(t)
	file := d.outageUnderHold(func(s lambdaidem.Store, options func(*lambdaidem.Options)) *lambdaidem.Guard {
		return lambdaidem.New(s, options, func(o *lambdaidem.Options) { o.FailOpen = true })
	})
	id := d.view("k").ID
	d.idem("leases", "--scan", "--never-started", file).want(t, exitDone, id+" is left out", "failed_open", "No lease belongs")
	d.idem("leases", "--scan", "--never-started", file, "--release", "--reason", "the outage", "--yes").want(t, exitDone, id+" is left out")
	if out := d.pay(d.held(), "k", paid); out.StatusCode != 409 || d.runs != 1 {
		t.Errorf("the next retry is answered %d, after %d runs", out.StatusCode, d.runs)
	}
	// The line of the retry can come first, and with other log lines around it.
	rec := d.claimed("first", nil)
	other := d.claimed("other", nil)
	log := fmt.Sprintf(`{"outcome":"failed_open","record":%q}`, rec.ID) + "\n" + neverStarted(rec) + "\n" + neverStarted(other)
	var v leasesView
	d.at(Streams{In: strings.NewReader(log)}, "leases", "--scan", "--never-started", "-", "-o", "json").want(t, exitDone).into(t, &v)
	if len(v.Leases) != 1 || v.Leases[0].ID != other.ID {
		t.Errorf("it lists %+v", v.Leases)
	}
}

// A line of a call that ran while the guard was switched off names no record. So any record may
// be that of the call, and none is released.
func TestX10_LeasesReleasesNothingIfCallsRanWhileTheGuardWasOff(t *testing.T) {
	d := openDesk(t)
	file := d.outageUnderHold(func(s lambdaidem.Store, options func(*lambdaidem.Options)) *lambdaidem.Guard {
		t.Setenv(lambdaidem.SwitchOff, "true")
		return lambdaidem.New(s, options)
	})
	t.Setenv(lambdaidem.SwitchOff, "false")
	d.idem("leases", "--scan", "--never-started", file).want(t, exitDone, d.view("k").ID)
	d.idem("leases", "--scan", "--never-started", file, "--release", "--reason", "the outage", "--yes").want(t, exitRefused, "nothing was released", "1 line", "switched_off")
	if out := d.pay(d.held(), "k", paid); out.StatusCode != 409 || d.runs != 1 {
		t.Errorf("the next retry is answered %d, after %d runs", out.StatusCode, d.runs)
	}
}
