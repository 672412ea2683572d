package emf_test

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/emf"
)

// found has the values of one document that Observer.DeadLeases has written.
type found struct {
	route                    string // "all" if the document has no route
	count, oldest            float64
	held, oldestHeld, recent float64
}

func looks(t *testing.T, text string) []found {
	t.Helper()
	var all []found
	for line := range strings.Lines(text) {
		d, err := parse(line)
		if err != nil {
			t.Fatalf("%v:\n%s", err, line)
		}
		f := found{"all", d.values["DeadLeases"], d.values["OldestDeadLease"], d.values["HeldRecords"], d.values["OldestHeldRecord"], d.values["RecentDeadLeases"]}
		sets := [][]string{{"service", "function"}}
		if route, ok := d.dimensions["route"]; ok {
			f.route, sets = route, [][]string{{"service", "function", "route"}}
		}
		if diff := cmp.Diff(sets, d.sets); diff != "" || len(d.values) != 5 {
			t.Errorf("the sets of dimensions (-want +got):\n%s\nof %s", diff, line)
		}
		if d.units["HeldRecords"] != "Count" || d.units["OldestHeldRecord"] != "Milliseconds" || d.units["RecentDeadLeases"] != "Count" ||
			d.units["DeadLeases"] != "Count" || d.units["OldestDeadLease"] != "Milliseconds" || d.dimensions["service"] != "shop" || d.dimensions["function"] != "payments" || d.namespace != "Lambdaidem" {
			t.Errorf("the document is %s", line)
		}
		all = append(all, f)
	}
	return all
}

// DeadLeases writes one document for all routes together and one for each route. It writes
// zeros too.
func TestO2_DeadLeasesAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		all     emf.DeadLeases
		byRoute map[string]emf.DeadLeases
		set     func(*emf.Options)
		want    []found
	}{
		"none": {want: []found{{"all", 0, 0, 0, 0, 0}}},
		"none of what may be": {byRoute: map[string]emf.DeadLeases{"POST /payments": {}},
			want: []found{{"all", 0, 0, 0, 0, 0}, {"POST /payments", 0, 0, 0, 0, 0}}},
		"some": {all: emf.DeadLeases{Count: 3, Oldest: 90*time.Second + 1999*time.Microsecond},
			byRoute: map[string]emf.DeadLeases{"notify": {Count: 1, Oldest: time.Hour}, "": {Count: 2, Oldest: time.Millisecond}},
			want:    []found{{"all", 3, 90001, 0, 0, 0}, {"(none)", 2, 1, 0, 0, 0}, {"notify", 1, 3600000, 0, 0, 0}}},
		"held": {all: emf.DeadLeases{Held: 2, OldestHeld: time.Minute}, byRoute: map[string]emf.DeadLeases{"notify": {Count: 1, Recent: 1, Held: 1, OldestHeld: -1}},
			want: []found{{"all", 0, 0, 2, 60000, 0}, {"notify", 1, 0, 1, 0, 1}}},
		"without routes": {all: emf.DeadLeases{Count: 1}, byRoute: map[string]emf.DeadLeases{"notify": {Count: 1}},
			set: func(o *emf.Options) { o.NoRoutes = true }, want: []found{{"all", 1, 0, 0, 0, 0}}},
		"a clock that was set back": {all: emf.DeadLeases{Count: 1, Oldest: -time.Second}, want: []found{{"all", 1, 0, 0, 0, 0}}},
		"a route to be escaped": {byRoute: map[string]emf.DeadLeases{"GET /\"ü": {}},
			want: []found{{"all", 0, 0, 0, 0, 0}, {"GET /%22%C3%BC", 0, 0, 0, 0, 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			set := c.set
			if set == nil {
				set = func(*emf.Options) {}
			}
			o, written := observed(set)
			o.DeadLeases(c.all, c.byRoute)
			if diff := cmp.Diff(c.want, looks(t, written.String()), cmp.AllowUnexported(found{})); diff != "" || len(written.all) != len(c.want) {
				t.Errorf("in %d writes, one for each line (-want +got):\n%s", len(written.all), diff)
			}
		})
	}
}

// DeadLeases uses the time of its call as the timestamp, and a call leaves nothing behind in the
// documents of the next one.
func TestO2_DeadLeasesHaveTheTimeOfTheLook(t *testing.T) {
	at := time.UnixMilli(1767319445678)
	o, written := observed(func(o *emf.Options) { o.Clock = func() time.Time { return at } })
	o.DeadLeases(emf.DeadLeases{Count: 7}, nil)
	at = at.Add(time.Second)
	o.DeadLeases(emf.DeadLeases{}, nil)
	docs := written.documents(t)
	if len(docs) != 2 || docs[0].at != at.Add(-time.Second) || docs[1].at != at || docs[1].values["DeadLeases"] != 0 {
		t.Errorf("the documents are %+v", docs)
	}
}

// oneAtATime is a writer that counts the writes that overlap another one. Each Write lets other
// goroutines run.
type oneAtATime struct {
	inside, overlaps atomic.Int64
	lines
}

func (w *oneAtATime) Write(p []byte) (int, error) {
	if w.inside.Add(1) > 1 {
		w.overlaps.Add(1)
	}
	for range 10 {
		runtime.Gosched()
	}
	defer w.inside.Add(-1)
	return w.lines.Write(p)
}

// DeadLeases and Observe may be called concurrently. Every line is written whole.
func TestO2_DeadLeasesShareTheObserver(t *testing.T) {
	var w oneAtATime
	o, _ := observed(func(o *emf.Options) { o.Writer = &w })
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				o.DeadLeases(emf.DeadLeases{Count: 1}, map[string]emf.DeadLeases{"POST /payments": {Count: 1}})
				o.Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.EventNew, Template: "POST /payments"})
			}
		})
	}
	group.Wait()
	if n := w.overlaps.Load(); n > 0 {
		t.Fatalf("%d writes overlapped another", n)
	}
	if got := len(w.documents(t)); got != 8*50*3 {
		t.Errorf("%d lines are whole, want %d", got, 8*50*3)
	}
}

// Dead leases, which the next retry takes over, and held records, which wait for an operator,
// are counted separately. Recent counts only dead leases that ended less than an hour ago.
func TestO2_HeldRecordsAndDeadLeasesAreCountedApart(t *testing.T) {
	var d emf.DeadLeases
	if !d.None() {
		t.Error("nothing is something")
	}
	d.Add(2*time.Hour, true)
	if want := (emf.DeadLeases{Held: 1, OldestHeld: 2 * time.Hour}); d != want || d.None() {
		t.Errorf("a held record is counted as %+v", d)
	}
	for _, ago := range []time.Duration{time.Minute, time.Hour - 1, time.Hour, 3 * time.Hour} {
		d.Add(ago, false)
	}
	d.Add(time.Minute, true)
	if want := (emf.DeadLeases{Count: 4, Recent: 2, Oldest: 3 * time.Hour, Held: 2, OldestHeld: 2 * time.Hour}); d != want {
		t.Errorf("all are counted as %+v", d)
	}
}

// TTL writes a value whether the table's TTL is enabled or disabled, because a missing value
// means that nobody checks the table.
func TestO2_TTLIsTold(t *testing.T) {
	for enabled, want := range map[bool]float64{true: 0, false: 1} {
		o, written := observed()
		o.TTL(enabled)
		if d := written.documents(t)[0]; len(d.values) != 1 || !d.has("TTLDisabled") || d.values["TTLDisabled"] != want || d.units["TTLDisabled"] != "Count" || len(d.sets) != 1 || len(d.sets[0]) != 2 {
			t.Errorf("enabled %v: %s", enabled, d.text)
		}
	}
}
