package redelivery

import (
	"strings"
	"testing"
	"time"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

// done returns counts in which each of these messages has one effect.
func done(names ...string) map[string]Count {
	all := map[string]Count{}
	for _, name := range names {
		all[name] = Count{Effects: 1}
	}
	return all
}

// goodBooks returns books without a breach: a1, which fails once, and a2 of the same group; b1,
// which crashes once; p, which always fails; and c1 and c2, which two invocations receive at the
// same time.
func goodBooks() Books {
	progress := done("a1", "a2")
	progress["b1"] = Count{Runs: []string{"r1", "r2"}}
	return Books{
		Ordered: true,
		Sent: []Message{
			{Name: "a1", Group: "a", Deeds: []Deed{Fail}}, {Name: "a2", Group: "a"}, {Name: "b1", Group: "b", Deeds: []Deed{Crash}},
			{Name: "p", Group: "p", Then: Refuse}, {Name: "c1", Group: "c"}, {Name: "c2", Group: "c"},
		},
		Deliveries: []Delivery{
			{Request: "r1", Batch: []string{"b1"}, Lost: true, Began: at(0), Ended: at(1)},
			{Request: "r2", Batch: []string{"b1", "a1", "a2", "b1", "p", "a1"}, Reported: []string{"b1", "a1", "a2", "p"}, Began: at(2), Ended: at(3), Left: time.Second},
			{Request: "r3", Batch: []string{"a1", "a2", "b1"}, Began: at(7), Ended: at(8), Left: time.Second, After: done("a1", "a2", "b1")},
			{Request: "r4", Batch: []string{"c1", "c2", "a1"}, Began: at(9), Ended: at(11), Left: time.Second, Before: progress, After: done("c1", "c2", "a1")},
			{Request: "r5", Batch: []string{"c1", "c2"}, Reported: []string{"c1", "c2"}, Began: at(10), Ended: at(12), Left: time.Second,
				After: done("c1", "c2")},
			{Request: "r6", Batch: []string{"c1"}, Reported: []string{"c1"}, Began: at(13), Ended: at(14), Before: done("c1"), After: done("c1")},
		},
		Counts: map[string]Count{
			"a1": {1, []string{"r2", "r3"}}, "a2": {1, []string{"r3"}}, "b1": {1, []string{"r1", "r3"}}, "p": {0, []string{"r2"}},
			"c1": {1, []string{"r4"}}, "c2": {1, []string{"r4"}},
		},
		Order: map[string][]string{"a": {"a1", "a2"}, "b": {"b1"}, "c": {"c1", "c2"}},
		Lease: 3 * time.Second, MinRunTime: time.Second / 2,
	}
}

func TestAuditFindsNothingInGoodBooks(t *testing.T) {
	r := goodBooks().Audit()
	if len(r.Findings) > 0 {
		t.Error(r)
	}
	want := Report{Messages: 6, Effects: 5, Runs: 8, Deliveries: 6, Lost: 1, Messengers: 16, Reported: 7}
	if r.Findings = nil; r.String() != want.String() {
		t.Errorf("%v\nwant\n%v", r, want)
	}
}

// set returns a function that changes one delivery of the books.
func set(i int, change func(*Delivery)) func(*Books) {
	return func(b *Books) { change(&b.Deliveries[i]) }
}

// runs returns a function that sets the invocations in which a message ran.
func runs(name string, requests ...string) func(*Books) {
	return func(b *Books) { b.Counts[name] = Count{b.Counts[name].Effects, requests} }
}

func TestV2_AuditFindsEachBreach(t *testing.T) {
	tests := []struct {
		name   string
		breach func(*Books)
		want   string
	}{
		{"an effect twice", func(b *Books) { b.Counts["a2"] = Count{2, []string{"r3"}} }, "a2 had 2 effects, by 1 runs; want 1 (G1)"},
		{"no effect", func(b *Books) { b.Counts["c1"] = Count{0, []string{"r4"}} }, "c1 had 0 effects, by 1 runs; want 1 (G1)"},
		{"an effect of what always fails", func(b *Books) { b.Counts["p"] = Count{1, []string{"r2"}} }, "p had 1 effects, by 1 runs; want 0 (G1)"},
		{"an effect of nothing", func(b *Books) { b.Counts["z"] = Count{Effects: 1} }, "z had an effect, and was never sent"},
		{"a wrong order", func(b *Books) { b.Order["a"] = []string{"a2", "a1"} }, "group a committed [a2 a1]; want [a1 a2] (V2)"},
		{"a double in the log", func(b *Books) { b.Order["b"] = []string{"b1", "b1"} }, "group b committed [b1 b1]; want [b1] (V2)"},
		{"a double in the log, without an order", func(b *Books) { b.Ordered, b.Order["b"] = false, []string{"b1", "b1"} }, "group b committed [b1 b1]; want [b1] (V2)"},
		{"a hole in the log", func(b *Books) { delete(b.Order, "b") }, "group b committed []; want [b1] (V2)"},
		{"a failure in silence", set(2, func(d *Delivery) { d.After = done("a1", "a2") }), "b1 is not reported, and is not done (V2)"},
		{"a success reported", set(2, func(d *Delivery) { d.Reported = []string{"a2"} }), "a2 is reported, and its handler did succeed (V2)"},
		{"what was done reported", set(5, func(d *Delivery) { d.Left = time.Second }), "c1 is reported, and was done before (V2)"},
		{"reported without a cause", set(4, func(d *Delivery) { d.Began, d.Ended = at(12), at(13) }), "c1 is reported, and nothing was in its way (V2)"},
		{"in progress before it began", set(3, func(d *Delivery) { d.Began = at(20); d.Ended = at(21) }), "c1 is reported, and nothing was in its way (V2)"},
		{"a lease that ends late", set(1, func(d *Delivery) { d.Began, d.Ended = at(4), at(5) }), "b1 is reported, and nothing was in its way (V2)"},
		{"in progress for ever", set(4, func(d *Delivery) { d.Before = done("c1") }), "c1 is reported, and was done before (V2)"},
		{"a lease of another one's", set(0, func(d *Delivery) { d.Batch = []string{"p"} }), "b1 is reported, and nothing was in its way (V2)"},
		{"in progress nowhere", runs("c1", "r5"), "c1 is reported, and its handler did succeed (V2)"},
		{"in progress in what did not run it", runs("c1"), "c1 is reported, and nothing was in its way (V2)"},
		{"in progress in itself", func(b *Books) {
			runs("b1", "r3")(b)
			b.Deliveries[0].Request = "r2"
		}, "b1 is reported, and nothing was in its way (V2)"},
		{"held back by another group", func(b *Books) { b.Sent[1].Group = "x" }, "a2 is reported, and nothing was in its way (V2)"},
		{"held back by what is done", set(5, func(d *Delivery) {
			d.Batch, d.Reported, d.Before, d.Left = []string{"c1", "c2"}, []string{"c2"}, done("c1", "c2"), time.Second
		}), "c2 is reported, and was done before (V2)"},
		{"held back by what comes later", set(1, func(d *Delivery) { d.Batch = []string{"b1", "a2", "a1", "p"} }), "a2 is reported, and nothing was in its way (V2)"},
		{"held back by no order", func(b *Books) { b.Ordered = false }, "a2 is reported, and nothing was in its way (V2)"},
		{"reported twice", set(1, func(d *Delivery) { d.Reported = append(d.Reported, "b1") }), "b1 is reported twice"},
		{"reported, and not delivered", set(3, func(d *Delivery) { d.Reported = []string{"b1"} }), "b1 is reported, and is none of the batch"},
		{"not sent", set(3, func(d *Delivery) { d.Batch = append(d.Batch, "z"); d.After["z"] = Count{Effects: 1} }), "z was never sent"},
		{"run twice in a batch", runs("a2", "r3", "r3"), "a2 ran 2 times in it"},
		{"run when done", runs("a1", "r2", "r3", "r4"), "a1 was done, and ran again (V2)"},
		{"run when done, and died", func(b *Books) {
			runs("a2", "r1", "r3")(b)
			b.Deliveries[0].Batch, b.Deliveries[0].Before = []string{"b1", "a2"}, done("a2")
		}, "a2 was done, and ran again (V2)"},
		{"run after its group's failure", func(b *Books) {
			runs("a2", "r2", "r3")(b)
			b.Sent[1].Deeds = []Deed{Fail}
		}, "a2 ran after a1 had failed, which is before it in its group (V2)"},
		{"died without a cause", set(3, func(d *Delivery) { d.Lost = true }), "1 invocations died that were not made to; the test killed 0"},
		{"an error in an answer's place", set(3, func(d *Delivery) { d.Odd = "an error" }), "there was no answer but an error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := goodBooks()
			tt.breach(&b)
			r := b.Audit()
			if text := strings.Join(r.Findings, "\n"); !strings.Contains(text, tt.want) {
				t.Errorf("found %q; want %q", text, tt.want)
			}
		})
	}
}

func TestAuditExcusesWhatTheTestKilled(t *testing.T) {
	b := goodBooks()
	b.Deliveries[3].Lost, b.Kills = true, 1
	if r := b.Audit(); len(r.Findings) > 0 {
		t.Error(r)
	}
}

func TestAuditExcusesWhatHadNoTime(t *testing.T) {
	b := goodBooks()
	b.Deliveries[3].Lost, b.Deliveries[3].TimedOut = true, true
	if r := b.Audit(); len(r.Findings) > 0 || r.Lost != 2 || r.TimedOut != 1 {
		t.Error(r)
	}
	b = goodBooks()
	b.Deliveries[3].Left, b.Deliveries[3].Reported = b.MinRunTime-1, []string{"c2"}
	if r := b.Audit(); len(r.Findings) > 0 {
		t.Error(r)
	}
	b.Deliveries[3].Left = b.MinRunTime
	wantFindings(t, b.Audit(), "c2 is reported, and its handler did succeed (V2)")
}

func TestMessage_DeedsGoOnForEver(t *testing.T) {
	m := Message{Name: "a", Group: "g", Deeds: []Deed{Fail, Crash}}
	for run, want := range map[int]Deed{1: Fail, 2: Crash, 3: Succeed, 9: Succeed} {
		if got := m.Deed(run); got != want {
			t.Errorf("run %d: %s, want %s", run, got, want)
		}
	}
	m.Then = Panic
	if m.Deed(2) != Crash || m.Deed(3) != Panic || !m.Poison() {
		t.Errorf("then: %s %s %v", m.Deed(2), m.Deed(3), m.Poison())
	}
	if m.Then = Succeed; m.Poison() {
		t.Error("what succeeds in the end is no poison")
	}
}

func TestDeed_SaysWhatTheSourceSees(t *testing.T) {
	for deed, want := range map[Deed][2]bool{ // results of fails and kills
		Succeed: {false, false}, Fail: {true, false}, Refuse: {true, false}, Panic: {true, false}, Wait: {true, false},
		Crash: {false, true}, Hang: {false, true}, Vanish: {false, true},
	} {
		if got := [2]bool{deed.fails(), deed.kills()}; got != want {
			t.Errorf("%s fails, kills: %v, want %v", deed, got, want)
		}
	}
}

func TestMessage_Valid(t *testing.T) {
	good := Message{Name: "a", Group: "g", Deeds: []Deed{Fail, Wait}, Then: Hang}
	if err := good.Valid(); err != nil {
		t.Error(err)
	}
	for _, bad := range []Message{
		{Name: "a"}, {Group: "g"}, {Name: "a", Group: "g", Then: "sing"}, {Name: "a", Group: "g", Deeds: []Deed{"sing"}}, {Name: "a", Group: "g", Deeds: []Deed{""}},
	} {
		if bad.Valid() == nil {
			t.Errorf("%+v passes", bad)
		}
	}
}
