package emf_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/emf"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// constants returns the values of all constants of the type typ in a source file of package
// lambdaidem. It reads the source, so that no new constant can be forgotten in a test.
func constants(t testing.TB, file, typ string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), "../"+file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		name, named := spec.Type.(*ast.Ident)
		literal, text := spec.Values[0].(*ast.BasicLit)
		if named && text && name.Name == typ {
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, value)
		}
		return true
	})
	if len(all) == 0 {
		t.Fatalf("%s has no constant of type %s", file, typ)
	}
	return all
}

// Every kind of event is counted by its own metric, whose name is that of the kind.
func TestO1_EveryKindHasAMetric(t *testing.T) {
	o, written := observed(func(o *emf.Options) { o.Bypassed = true })
	kinds := constants(t, "eventkind.go", "Kind")
	for _, kind := range kinds {
		o.Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.Kind(kind)})
	}
	for i, d := range written.documents(t) {
		name := strings.ReplaceAll(kinds[i], "_", "")
		if got := d.metrics()[0]; !strings.EqualFold(got, name) || got[0] < 'A' || got[0] > 'Z' || d.values[got] != 1 || d.units[got] != "Count" {
			t.Errorf("%s makes %v", kinds[i], d.text)
		}
	}
	named := 0
	for _, m := range emf.Metrics() {
		if m.Kind != "" {
			named++
		}
	}
	if named != len(kinds) {
		t.Errorf("%d metrics count kinds, of which there are %d", named, len(kinds))
	}
}

// An event of a kind that only a later version knows is counted as Other.
func TestO1_AnUnknownKind(t *testing.T) {
	o, written := observed()
	o.Observe(t.Context(), lambdaidem.Event{Kind: `later","x":"`})
	if d := written.documents(t)[0]; !slices.Equal(d.metrics(), []string{"Other"}) {
		t.Errorf("it makes %s", d.text)
	}
}

// Metrics lists every metric that can be written, once and with its unit, and no other metric.
func TestO1_MetricsAreListed(t *testing.T) {
	listed := map[string]string{}
	for _, m := range emf.Metrics() {
		if _, twice := listed[m.Name]; twice {
			t.Errorf("%s is listed twice", m.Name)
		}
		listed[m.Name] = string(m.Unit)
	}
	o, written := observed(func(o *emf.Options) { o.Bypassed = true })
	for _, kind := range append(constants(t, "eventkind.go", "Kind"), "later") {
		for _, limit := range append(constants(t, "storeerror.go", "Throttle"), "later") {
			o.Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.Kind(kind), Duration: 1e6, Handler: 1e6, Store: 1e6, Attempt: 1,
				Reason: lambdaidem.ReasonThrottled, Throttle: lambdaidem.Throttle(limit)})
		}
	}
	o.DeadLeases(emf.DeadLeases{}, nil)
	o.TTL(true)
	found := map[string]bool{}
	for _, d := range written.documents(t) {
		for name, unit := range d.units {
			if found[name] = true; listed[name] != unit {
				t.Errorf("%s has the unit %q; %q is listed", name, unit, listed[name])
			}
		}
	}
	for name := range listed {
		if !found[name] {
			t.Errorf("%s is listed, and nothing makes it", name)
		}
	}
}

func TestO1_ValuesOfACall(t *testing.T) {
	o, written := observed()
	o.Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.EventNew, Template: "POST /payments/{id}", Attempt: 3,
		Duration: 12345678 * time.Nanosecond, Handler: 7 * time.Millisecond, Store: time.Second})
	d := written.documents(t)[0]
	want := map[string]float64{"New": 1, "Duration": 12.345, "HandlerDuration": 7, "StoreDuration": 1000, "Attempt": 3}
	for name, value := range want {
		if d.values[name] != value {
			t.Errorf("%s is %v, want %v", name, d.values[name], value)
		}
	}
	if len(d.values) != len(want) || d.units["Duration"] != "Milliseconds" || d.units["Attempt"] != "None" {
		t.Errorf("the document is %s", d.text)
	}
}

// If the clock was set back, no duration is written.
func TestO1_NoTimeIsNegative(t *testing.T) {
	o, written := observed()
	o.Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.EventNew, Duration: -1, Handler: math.MinInt64, Store: -time.Second})
	if d := written.documents(t)[0]; !slices.Equal(d.metrics(), []string{"New"}) {
		t.Errorf("the document is %s", d.text)
	}
}

// A throttled store call is counted once, by the metric of the limit that throttled it.
func TestO1_ThrottlesByLimit(t *testing.T) {
	named := map[lambdaidem.Throttle]string{
		lambdaidem.ThrottleKeyRange: "ThrottledKeyRange", lambdaidem.ThrottleAccount: "ThrottledAccount", lambdaidem.ThrottleMaximum: "ThrottledOnDemandMaximum",
		lambdaidem.ThrottleProvisioned: "ThrottledProvisioned", lambdaidem.ThrottleUnknown: "ThrottledUnknown", "later": "ThrottledOther",
	}
	for _, limit := range constants(t, "storeerror.go", "Throttle") {
		if named[lambdaidem.Throttle(limit)] == "" {
			t.Errorf("the limit %s has no metric", limit)
		}
	}
	for limit, name := range named {
		o, written := observed()
		e := lambdaidem.Event{Kind: lambdaidem.EventStoreError, Reason: lambdaidem.ReasonThrottled, Throttle: limit}
		o.Observe(t.Context(), e)
		e.Kind = lambdaidem.EventFailedOpen // an event about the same failure
		o.Observe(t.Context(), e)
		docs := written.documents(t)
		if got := docs[0].metrics(); !slices.Equal(got, slices.Sorted(slices.Values([]string{"StoreError", "Throttled", name}))) {
			t.Errorf("%q makes %v", limit, got)
		}
		if got := docs[1].metrics(); !slices.Equal(got, []string{"FailedOpen"}) {
			t.Errorf("what follows from it makes %v", got)
		}
	}
}

// The document has the reason of the store's failure, which is one of a few fixed words.
func TestO1_ReasonsAreToldInTheLog(t *testing.T) {
	for _, reason := range append(constants(t, "storeerror.go", "Reason"), "later") {
		o, written := observed()
		o.Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.EventStoreError, Reason: lambdaidem.Reason(reason)})
		want := reason
		switch reason {
		case "":
			want = "unknown"
		case "later":
			want = "other"
		}
		if d := written.documents(t)[0]; !strings.Contains(d.text, `"reason":"`+want+`"`) || d.has("Throttled") != (want == "throttled") {
			t.Errorf("%q is told as %s", reason, d.text)
		}
	}
}

// If Records is set, a document also has the record's id and the outcome, in the same words as
// a log line. The metrics and their dimensions stay the same.
func TestO1_RecordsAreToldIfAskedFor(t *testing.T) {
	said := func(e lambdaidem.Event, records bool) document {
		o, written := observed(func(o *emf.Options) { o.Records, o.Bypassed = records, true })
		o.Observe(t.Context(), e)
		return written.documents(t)[0]
	}
	for _, kind := range append(constants(t, "eventkind.go", "Kind"), "later") {
		e := lambdaidem.Event{Kind: lambdaidem.Kind(kind), RecordID: "lambdaidem#aB-_9", Duration: time.Millisecond}
		without, with := said(e, false), said(e, true)
		want := map[string]string{"outcome": kind, "record": "lambdaidem#aB-_9"}
		if kind == "later" {
			want["outcome"] = "other"
		}
		for name, text := range without.members { // the reason, if there is one
			want[name] = text
		}
		if !maps.Equal(with.members, want) || without.members["record"] != "" || without.members["outcome"] != "" {
			t.Errorf("%s: %s\nwithout: %s", kind, with.text, without.text)
		}
		if fmt.Sprint(with.sets) != fmt.Sprint(without.sets) || !slices.Equal(with.metrics(), without.metrics()) {
			t.Errorf("%s has other metrics with its record: %s", kind, with.text)
		}
	}
	if d := said(lambdaidem.Event{Kind: lambdaidem.EventBypassed}, true); !maps.Equal(d.members, map[string]string{"outcome": "bypassed"}) {
		t.Errorf("what has no record is %s", d.text)
	}
	if d := said(lambdaidem.Event{RecordID: strings.Repeat("x", 99) + `"` + strings.Repeat("x", 99)}, true); d.members["record"] != strings.Repeat("x", 99)+"%22"+strings.Repeat("x", 26) {
		t.Errorf("an id that is not ours is %q", d.members["record"])
	}
}

func TestO1_Dimensions(t *testing.T) {
	for template, route := range map[string]string{
		"POST /payments/{id}": "POST /payments/{id}", "": "(none)", `a"b\c`: "a%22b%5Cc", "ü\x00\n": "%C3%BC%00%0A", "\xff": "%FF",
		strings.Repeat("x", 1100): strings.Repeat("x", 1024), strings.Repeat("ü", 1100): strings.Repeat("%C3%BC", 170) + "%C3",
		strings.Repeat("x", 1021) + "\n": strings.Repeat("x", 1021) + "%0A", strings.Repeat("x", 1022) + "\n": strings.Repeat("x", 1022),
	} {
		o, written := observed()
		o.Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.EventNew, Template: template})
		d := written.documents(t)[0]
		if d.dimensions["route"] != route || d.dimensions["service"] != "shop" || d.dimensions["function"] != "payments" {
			t.Errorf("%q has the dimensions %v", template, d.dimensions)
		}
		if fmt.Sprint(d.sets) != "[[service function] [service function route]]" {
			t.Errorf("the sets are %v", d.sets)
		}
	}
	o, written := observed(func(o *emf.Options) { o.NoRoutes = true })
	o.Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.EventNew, Template: "POST /a"})
	if d := written.documents(t)[0]; fmt.Sprint(d.sets) != "[[service function]]" || strings.Contains(d.text, "POST /a") {
		t.Errorf("the document is %s", d.text)
	}
}

func TestOptions_Defaults(t *testing.T) {
	t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "shop-payments")
	var l lines
	emf.New(func(o *emf.Options) { o.Writer = &l }).Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.EventNew})
	d := l.documents(t)[0]
	if d.namespace != "Lambdaidem" || d.dimensions["service"] != "shop-payments" || d.dimensions["function"] != "shop-payments" {
		t.Errorf("the document is %s", d.text)
	}
	if age := time.Since(d.at); age < 0 || age > time.Minute {
		t.Errorf("the document is of %v", d.at)
	}
	t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "")
	emf.New(func(o *emf.Options) { o.Writer = &l }).Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.EventNew})
	if d := l.documents(t)[1]; d.dimensions["function"] != "emf.test" {
		t.Errorf("the document is %s", d.text)
	}
}

func TestOptions_NamespaceIsChecked(t *testing.T) {
	makes := func(namespace string) (message any) {
		defer func() { message = recover() }()
		emf.New(func(o *emf.Options) { o.Namespace = namespace })
		return nil
	}
	for _, bad := range []string{"AWS/Lambda", ":a", "a b", "ü", `a"`, strings.Repeat("a", 256)} {
		if message := makes(bad); message == nil || !strings.Contains(fmt.Sprint(message), "Options.Namespace") {
			t.Errorf("%q: %v", bad, message)
		}
	}
	for _, good := range []string{"Lambdaidem", "a.b-c_d/e#f:g", "Z9", strings.Repeat("a", 255)} {
		if message := makes(good); message != nil {
			t.Errorf("%q: %v", good, message)
		}
	}
}

// The timestamp of a document is the time of Options.Clock, in whole milliseconds since 1970.
func TestOptions_Clock(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_999_999, time.FixedZone("", 3600))
	o, written := observed(func(o *emf.Options) { o.Clock = func() time.Time { return at } })
	o.Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.EventNew})
	if d := written.documents(t)[0]; d.at.UnixMilli() != 1767319445678 {
		t.Errorf("the document is of %v", d.at.UTC())
	}
}

// The longest possible document is a single line that a write to a pipe keeps whole; see parse.
func TestLimits_TheLongestDocument(t *testing.T) {
	long := strings.Repeat("x", 2000)
	o, written := observed(func(o *emf.Options) {
		o.Namespace, o.Service, o.Function, o.Records = long[:255], long, long, true
	})
	for _, kind := range constants(t, "eventkind.go", "Kind") {
		o.Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.Kind(kind), RecordID: long, Template: long, Attempt: math.MaxInt, Duration: math.MaxInt64, Handler: math.MaxInt64, Store: math.MaxInt64,
			Reason: lambdaidem.ReasonThrottled, Throttle: lambdaidem.ThrottleMaximum})
	}
	longest := 0
	for _, d := range written.documents(t) {
		longest = max(longest, len(d.text))
	}
	t.Logf("it has %d bytes", longest)
}

// Several invocations in one process write whole lines, each with a single call of Write.
func TestObserver_Concurrently(t *testing.T) {
	o, written := observed()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 200 {
				o.Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.EventNew, Template: fmt.Sprintf("POST /%d", i), Attempt: i + 1})
			}
		})
	}
	wg.Wait()
	docs := written.documents(t)
	if len(docs) != 1600 {
		t.Errorf("there are %d documents, want 1600", len(docs))
	}
	for _, d := range docs {
		if d.dimensions["route"] != fmt.Sprintf("POST /%v", d.values["Attempt"]-1) {
			t.Errorf("the document is %s", d.text)
		}
	}
}

// Each call is measured once, whatever happens to it, and all of its documents have been
// written when the guard returns the response.
func TestO1_ACallIsMeasuredOnce(t *testing.T) {
	for name, c := range map[string]struct {
		opt    func(*lambdaidem.Options)
		faults func(*idemtest.Store)
		status int
		want   []string
	}{
		"new":      {status: 201, want: []string{"New"}},
		"released": {status: 500, want: []string{"Released"}},
		"fails open": {func(o *lambdaidem.Options) { o.FailOpen = true }, func(s *idemtest.Store) {
			s.Next(idemtest.Acquire, idemtest.LoseReply)
		}, 201, []string{"StoreError", "FailedOpen", "New"}},
		"uncertain": {func(o *lambdaidem.Options) { o.CleanupTimeout = time.Millisecond }, func(s *idemtest.Store) {
			s.Always(idemtest.Complete, idemtest.Refuse(lambdaidem.ReasonNoTable))
		}, 201, []string{"StoreError", "Uncertain"}},
		"not stored": {nil, func(s *idemtest.Store) { s.Next(idemtest.Complete, idemtest.Refuse(lambdaidem.ReasonTooLarge)) }, 201, []string{"AnswerLost"}},
	} {
		t.Run(name, func(t *testing.T) {
			o, written := observed()
			store := idemtest.NewStore(memstore.New())
			if c.faults != nil {
				c.faults(store)
			}
			g := lambdaidem.New(store, func(opts *lambdaidem.Options) {
				opts.Observer = o
				if c.opt != nil {
					c.opt(opts)
				}
			})
			h := g.APIGatewayV2(func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
				time.Sleep(time.Millisecond)
				return events.APIGatewayV2HTTPResponse{StatusCode: c.status}, nil
			})
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if _, err := h(ctx, idemtest.Request{Path: "/payments", Key: "k"}.APIGatewayV2()); err != nil {
				t.Fatal(err)
			}
			var counted []string
			measured := 0
			for _, d := range written.documents(t) {
				for _, m := range emf.Metrics() {
					if m.Kind != "" && d.has(m.Name) {
						counted = append(counted, m.Name)
					}
				}
				if d.has("Duration") {
					measured++
					if !d.has("HandlerDuration") || !d.has("StoreDuration") || d.values["Duration"] < d.values["HandlerDuration"]+d.values["StoreDuration"] || d.values["Attempt"] > 1 {
						t.Errorf("the document is %s", d.text)
					}
				} else if d.has("HandlerDuration") || d.has("StoreDuration") || d.has("Attempt") {
					t.Errorf("the document is %s", d.text)
				}
			}
			if !slices.Equal(counted, c.want) || measured != 1 {
				t.Errorf("counted are %v, want %v; the call is measured %d times", counted, c.want, measured)
			}
		})
	}
}

// Every document of a large batch is valid, and none is missing.
func TestLimits_ALargeBatch(t *testing.T) {
	o, written := observed()
	g := lambdaidem.New(memstore.New(), func(opts *lambdaidem.Options) { opts.Observer = o })
	batch := idemtest.SQS("orders", make([]idemtest.Message, 10_000)...)
	h := g.SQS(func(context.Context, events.SQSMessage) error { return nil }, func(o *lambdaidem.BatchOptions[events.SQSMessage]) { o.Concurrency = 8 })
	if out, err := h(t.Context(), batch); err != nil || len(out.BatchItemFailures) > 0 {
		t.Fatalf("%d failed, %v", len(out.BatchItemFailures), err)
	}
	docs := written.documents(t)
	for _, d := range docs {
		if !d.has("New") || d.dimensions["route"] != batch.Records[0].EventSourceARN {
			t.Fatalf("the document is %s", d.text)
		}
	}
	if len(docs) != 10_000 {
		t.Errorf("there are %d documents", len(docs))
	}
}

// A call that runs unguarded by design, such as a GET, writes a document only if
// Options.Bypassed is set.
func TestO1_BypassedIsCountedByOption(t *testing.T) {
	o, written := observed()
	o.Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.EventBypassed})
	if len(written.all) != 0 {
		t.Errorf("it wrote %q", written.String())
	}
	o, written = observed(func(o *emf.Options) { o.Bypassed = true })
	o.Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.EventBypassed})
	o.Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.EventSwitchedOff})
	if all := written.documents(t); len(all) != 2 || all[0].values["Bypassed"] != 1 {
		t.Errorf("it wrote %q", written.String())
	}
}

// No value of a dimension is blank, because CloudWatch rejects blank values.
func TestO1_NoDimensionIsBlank(t *testing.T) {
	o, written := observed(func(o *emf.Options) { o.Service, o.Function = " ", "  " })
	o.Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.EventNew, Template: "   "})
	o.DeadLeases(emf.DeadLeases{}, map[string]emf.DeadLeases{" ": {Count: 1}})
	for _, d := range written.documents(t) {
		for name, v := range d.dimensions {
			if strings.TrimSpace(v) == "" {
				t.Errorf("the dimension %s is %q: %s", name, v, d.text)
			}
		}
	}
	if d := written.documents(t)[0]; d.dimensions["route"] != "(none)" {
		t.Errorf("a blank route is %q", d.dimensions["route"])
	}
}
