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

// found is what the documents of a look say.
type found struct {
	route         string // "all" of the one without
	count, oldest float64
}

func looks(t *testing.T, text string) []found {
	t.Helper()
	var all []found
	for line := range strings.Lines(text) {
		d, err := parse(line)
		if err != nil {
			t.Fatalf("%v:\n%s", err, line)
		}
		f := found{"all", d.values["DeadLeases"], d.values["OldestDeadLease"]}
		sets := [][]string{{"service", "function"}}
		if route, ok := d.dimensions["route"]; ok {
			f.route, sets = route, [][]string{{"service", "function", "route"}}
		}
		if diff := cmp.Diff(sets, d.sets); diff != "" || len(d.values) != 2 {
			t.Errorf("the sets of dimensions (-want +got):\n%s\nof %s", diff, line)
		}
		if d.units["DeadLeases"] != "Count" || d.units["OldestDeadLease"] != "Milliseconds" || d.dimensions["service"] != "shop" || d.dimensions["function"] != "payments" || d.namespace != "Lambdaidem" {
			t.Errorf("the document is %s", line)
		}
		all = append(all, f)
	}
	return all
}

// O2: a document of all, and one of each route; none is 0, and is told.
func TestO2_DeadLeasesAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		all     emf.DeadLeases
		byRoute map[string]emf.DeadLeases
		set     func(*emf.Options)
		want    []found
	}{
		"none": {want: []found{{"all", 0, 0}}},
		"none of what may be": {byRoute: map[string]emf.DeadLeases{"POST /payments": {}},
			want: []found{{"all", 0, 0}, {"POST /payments", 0, 0}}},
		"some": {all: emf.DeadLeases{Count: 3, Oldest: 90*time.Second + 1999*time.Microsecond},
			byRoute: map[string]emf.DeadLeases{"notify": {Count: 1, Oldest: time.Hour}, "": {Count: 2, Oldest: time.Millisecond}},
			want:    []found{{"all", 3, 90001}, {"(none)", 2, 1}, {"notify", 1, 3600000}}},
		"without routes": {all: emf.DeadLeases{Count: 1}, byRoute: map[string]emf.DeadLeases{"notify": {Count: 1}},
			set: func(o *emf.Options) { o.NoRoutes = true }, want: []found{{"all", 1, 0}}},
		"a clock that was set back": {all: emf.DeadLeases{Count: 1, Oldest: -time.Second}, want: []found{{"all", 1, 0}}},
		"a route to be escaped": {byRoute: map[string]emf.DeadLeases{"GET /\"ü": {}},
			want: []found{{"all", 0, 0}, {"GET /%22%C3%BC", 0, 0}}},
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

// Its time is the moment of the look, and an event before it leaves nothing behind.
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

// oneAtATime is a writer that notes when two goroutines write to it at once. It
// lets others run while it writes.
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

// O2: a look may be told of while calls are: every line is whole.
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
