package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

func TestO2_LeasesByAge(t *testing.T) {
	d := openDesk(t)
	d.idem("leases", "--scan").want(t, exitDone, "No lease is dead")
	d.clock = time.Now().Add(-3 * time.Hour)
	d.pay(d.held(), "old", died)
	d.clock = time.Now().Add(-time.Hour)
	d.pay(d.guard, "younger", died)
	d.pay(d.guard.With(func(o *lambdaidem.Options) { o.TTL = lambdaidem.MinTTL }), "expired", died)
	d.clock = time.Now()
	d.pay(d.guard, "live", died)
	d.pay(d.guard, "done", paid)
	var v leasesView
	g := d.idem("leases", "--scan", "-o", "json").want(t, exitDone)
	g.into(t, &v)
	if !strings.Contains(g.err, "whole table") {
		t.Errorf("it doesn't warn of its cost: %q", g.err)
	}
	if len(v.Leases) != 2 || v.Leases[0].ID != d.view("old").ID || v.Leases[0].State != "held" || v.Leases[1].State != "dead" || v.Leases[0].Steps != 1 {
		t.Fatalf("it found %+v", v)
	}
	if over := time.Duration(v.Leases[0].Over) * time.Second; over < 2*time.Hour+50*time.Minute || over > 3*time.Hour {
		t.Errorf("the older is over since %v", over)
	}
	d.idem("leases", "--scan").want(t, exitDone, "held", "dead", "POST /payments/{id}", "jwt:https://issuer|bob", "2h5")
	v = leasesView{}
	d.idem("leases", "--scan", "--limit", "1", "-o", "json").want(t, exitDone).into(t, &v)
	if len(v.Leases) != 1 || !v.More || v.Leases[0].State != "held" {
		t.Errorf("of the first alone it says %+v", v)
	}
	d.idem("leases", "--scan", "--limit", "0").want(t, exitUsage)
	v = leasesView{}
	d.idem("leases", "--scan", "--max-skew", "2h", "-o", "json").want(t, exitDone).into(t, &v)
	if len(v.Leases) != 1 || v.Leases[0].State != "held" {
		t.Errorf("where clocks may be 2h apart it finds %+v", v)
	}
}

func TestO2_WatchSaysWhatChanged(t *testing.T) {
	d := openDesk(t)
	d.clock = time.Now().Add(-time.Hour)
	d.pay(d.held(), "a", died)
	d.pay(d.guard, "b", died)
	var w watchView
	g := d.idem("watch", "--scan", "--looks", "2", "--interval", "1s", "-o", "json").want(t, exitDone)
	lines := strings.Split(strings.TrimSpace(g.out), "\n")
	if len(lines) != 2 {
		t.Fatalf("two looks are %q", g.out)
	}
	if err := json.Unmarshal([]byte(lines[1]), &w); err != nil || w.Dead != 1 || w.Held != 1 || w.New != 0 || w.Gone != 0 || w.Oldest < 3000 {
		t.Errorf("%+v, %v", w, err)
	}
	d.idem("watch", "--scan", "--looks", "1").want(t, exitDone, "1 dead, 1 held", "0 new, 0 gone")
	now := leasesView{Leases: []leaseView{{ID: "b"}, {ID: "c", State: "held"}}}
	if v, _ := now.since(map[string]bool{"a": true, "b": true}); v.New != 1 || v.Gone != 1 || v.Held != 1 || v.Dead != 1 {
		t.Errorf("between two looks it says %+v", v)
	}
	d.idem("watch", "--scan", "--interval", "1ms").want(t, exitUsage)
}

// With an index, leases scans nothing. release and settle remove a record from the index even
// if they are not told of the index.
func TestO2_LeasesByIndex(t *testing.T) {
	d := openDesk(t)
	table := d.table + "-indexed"
	indexed := func(o *dynamostore.Options) { o.LeaseIndex, o.LeaseShards = "leases", 100 }
	if err := dynamostore.CreateTable(t.Context(), d.client, table, indexed); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := d.client.DeleteTable(context.WithoutCancel(t.Context()), &dynamodb.DeleteTableInput{TableName: aws.String(table)}); err != nil {
			t.Error(err)
		}
	})
	d.guard = lambdaidem.New(dynamostore.New(d.client, table, indexed, func(o *dynamostore.Options) { o.AttemptTimeout = time.Minute }), func(o *lambdaidem.Options) {
		o.Namespace, o.Observer, o.Clock = "shop", lambdaidem.Discard, func() time.Time { return d.clock }
	})
	t.Setenv(tableVariable, table)
	d.pay(d.held(), "a", died)
	d.pay(d.guard, "b", died)
	d.pay(d.guard, "done", paid)
	d.clock = time.Now()
	d.pay(d.guard, "live", died)
	d.idem("leases").want(t, exitUsage, "--lease-index")
	look := func() (v leasesView) {
		g := d.idem("leases", "--lease-index", "leases", "--lease-shards", "100", "-o", "json").want(t, exitDone)
		if g.into(t, &v); strings.Contains(g.err, "whole table") {
			t.Errorf("it scans: %s", g.err)
		}
		return v
	}
	if v := look(); len(v.Leases) != 2 {
		t.Fatalf("it found %+v", v)
	}
	for _, key := range []string{"a", "b"} {
		v := d.view(key)
		verb := []string{"settle", v.ID, "--no-answer"}
		if key == "b" {
			verb = []string{"release", v.ID}
		}
		d.idem(append(verb, "--token", v.Token, "--reason", "r", "--yes")...).want(t, exitDone)
	}
	out, err := d.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(table), IndexName: aws.String("leases")})
	if err != nil || out.Count != 1 {
		t.Errorf("the index has %d entries, %v; want the live one alone", out.Count, err)
	}
	if v := look(); len(v.Leases) != 0 {
		t.Errorf("it found %+v", v)
	}
}

// The leases that ended first are listed first, in whatever order they are found. --limit drops the
// others.
func TestO2_LeasesAreSortedByAge(t *testing.T) {
	now := time.Now()
	for _, order := range [][]int{{1, 2, 3, 4}, {4, 3, 2, 1}, {2, 4, 1, 3}} {
		var v leasesView
		for _, hours := range order {
			v.add(lambdaidem.Record{ID: strconv.Itoa(hours), State: lambdaidem.InProgress, LeaseEnd: now.Add(-time.Duration(hours) * time.Hour)}, now, 3)
		}
		if len(v.Leases) != 3 || v.Leases[0].ID != "4" || v.Leases[1].ID != "3" || v.Leases[2].ID != "2" || !v.More {
			t.Errorf("found as %v, they are %+v", order, v)
		}
		all := leasesView{}
		for _, hours := range order {
			all.add(lambdaidem.Record{ID: strconv.Itoa(hours), State: lambdaidem.InProgress, LeaseEnd: now.Add(-time.Duration(hours) * time.Hour)}, now, len(order))
		}
		if len(all.Leases) != len(order) || all.More {
			t.Errorf("as many as the limit allows are %d of %d, more: %v", len(all.Leases), len(order), all.More)
		}
	}
}

func TestO2_BoundsOfASearchForLeases(t *testing.T) {
	for _, o := range []search{{limit: 1, rate: 1}, {limit: 1, rate: leastRate}, {limit: 1, rate: mostRate}, {limit: 1, rate: 1, margin: time.Hour}} {
		if err := o.check(); err != nil {
			t.Errorf("%+v is refused: %v", o, err)
		}
	}
	for flag, o := range map[string]search{
		"--limit":                {limit: 0, rate: 1},
		"--max-skew":             {limit: 1, rate: 1, margin: -1},
		"--rate is 0;":           {limit: 1, rate: 0},
		"--rate is 0.0009;":      {limit: 1, rate: 0.0009},
		"--rate is 1.000001e+09": {limit: 1, rate: 1.000001e9},
		"--rate is NaN":          {limit: 1, rate: math.NaN()},
	} {
		if err := o.check(); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%+v: %v; want an error about %s", o, err, flag)
		}
	}
}

// An item that can't be read may be a lease whose attempt died, so it is counted even if
// no other lease is dead.
func TestO2_LeasesThatCannotBeReadAreCounted(t *testing.T) {
	const none = "No lease is dead, and no record is held"
	for want, v := range map[string]leasesView{
		none + ".\n": {},
		none + ", among the items that can be read.\n(1 item can't be read, and may hide":  {Unreadable: 1},
		none + ", among the items that can be read.\n(2 items can't be read, and may hide": {Unreadable: 2},
	} {
		var out strings.Builder
		if err := v.text(printer{&out}); err != nil || !strings.HasPrefix(out.String(), want) {
			t.Errorf("%+v prints %q, %v; want %q", v, out.String(), err, want)
		}
	}
	end := time.Now()
	v := leasesView{Leases: []leaseView{{ID: "lambdaidem#k", LeaseEnd: &end}}, Unreadable: 1}
	var out strings.Builder
	if err := v.text(printer{&out}); err != nil || !strings.Contains(out.String(), "\n(1 item can't be read, and may hide a dead lease") {
		t.Errorf("beside a lease it prints %q, %v", out.String(), err)
	}
}

// An item that can't be read may be the lease of an attempt that died.
func TestO2_WatchCountsWhatCantBeRead(t *testing.T) {
	for unreadable, want := range map[int]string{0: "", 1: "1 item can't be read", 3: "3 items can't be read"} {
		var out bytes.Buffer
		summary, _ := (&leasesView{Unreadable: unreadable}).since(nil)
		if err := (&app{Out: printer{&out}}).printLook(summary); err != nil || !strings.Contains(out.String(), want) || strings.Contains(out.String(), "read") != (unreadable > 0) {
			t.Errorf("with %d, watch prints %q, %v", unreadable, out.String(), err)
		}
	}
}
