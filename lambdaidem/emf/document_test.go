package emf_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem/emf"
)

// lines is a writer that keeps the text of each call of Write.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(p))
	return len(p), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "")
}

// documents returns the documents that were written. It fails the test if one of them is invalid.
func (l *lines) documents(t testing.TB) []document {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var docs []document
	for _, line := range l.all {
		d, err := parse(line)
		if err != nil {
			t.Fatalf("%v:\n%s", err, line)
		}
		docs = append(docs, d)
		keep(t, line)
	}
	return docs
}

// keep appends a document to the file named by $EMF_DOCUMENTS, if that is set. `make validate`
// checks that all documents in the file match the schema that AWS has published.
func keep(t testing.TB, line string) {
	t.Helper()
	name := os.Getenv("EMF_DOCUMENTS")
	if name == "" {
		return
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // the name of the file comes from whoever runs the test
	if err == nil {
		_, err = file.WriteString(line)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// observed returns an observer and the writer to which it writes.
func observed(optFns ...func(*emf.Options)) (*emf.Observer, *lines) {
	var l lines
	all := append([]func(*emf.Options){func(o *emf.Options) { o.Service, o.Function, o.Writer = "shop", "payments", &l }}, optFns...)
	return emf.New(all...), &l
}

// document is a document as CloudWatch reads it.
type document struct {
	at         time.Time
	namespace  string
	sets       [][]string
	units      map[string]string
	values     map[string]float64
	dimensions map[string]string
	members    map[string]string // members that are neither metrics nor dimensions
	text       string
}

// has reports whether the document has a metric of this name.
func (d document) has(metric string) bool { _, ok := d.values[metric]; return ok }

// metrics returns the names of the document's metrics, sorted.
func (d document) metrics() []string { return slices.Sorted(maps.Keys(d.values)) }

// units matches the units of MetricDatum (Amazon CloudWatch API Reference).
var units = regexp.MustCompile(`^((Kilo|Mega|Giga|Tera)?(bytes|bits|Bytes|Bits)(/Second)?|Seconds|Microseconds|Milliseconds|Percent|Count(/Second)?|None)$`)

var namespaces = regexp.MustCompile(`^[0-9A-Za-z._/#-][0-9A-Za-z.:_/#-]{0,254}$`)

// parse parses one line. It returns an error if the line breaks a constraint of "Specification:
// Embedded metric format" in the Amazon CloudWatch User Guide or of MetricDatum and Dimension in
// the API Reference, or if it could be torn apart in a log: it must be a single line of at most
// 4096 bytes.
func parse(line string) (document, error) {
	d := document{units: map[string]string{}, values: map[string]float64{}, dimensions: map[string]string{}, members: map[string]string{}, text: line}
	body, ended := strings.CutSuffix(line, "\n")
	switch {
	case !ended || strings.ContainsAny(body, "\n\r"):
		return d, fmt.Errorf("it is no single line")
	case len(line) > 4096: // POSIX guarantees that a pipe keeps a write of this size whole, even with other writers; the format allows 1 MB
		return d, fmt.Errorf("it has %d bytes", len(line))
	}
	var root map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &root); err != nil {
		return d, err
	}
	var meta struct {
		Timestamp         *int64
		CloudWatchMetrics []struct {
			Namespace  string
			Dimensions [][]string
			Metrics    []struct{ Name, Unit string }
		}
	}
	strict := json.NewDecoder(bytes.NewReader(root["_aws"]))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&meta); err != nil {
		return d, fmt.Errorf("the metadata: %w", err)
	}
	if meta.Timestamp == nil || len(meta.CloudWatchMetrics) != 1 {
		return d, fmt.Errorf("it has no timestamp, or not one directive")
	}
	d.at = time.UnixMilli(*meta.Timestamp)
	directive := meta.CloudWatchMetrics[0]
	d.namespace, d.sets = directive.Namespace, directive.Dimensions
	if !namespaces.MatchString(d.namespace) || strings.HasPrefix(d.namespace, "AWS/") {
		return d, fmt.Errorf("the namespace is %q", d.namespace)
	}
	if n := len(d.sets); n == 0 {
		return d, fmt.Errorf("there is no set of dimensions")
	}
	for _, set := range d.sets {
		if len(set) > 30 {
			return d, fmt.Errorf("a set has %d dimensions", len(set))
		}
		for _, name := range set {
			var text string
			if err := json.Unmarshal(root[name], &text); err != nil {
				return d, fmt.Errorf("the dimension %q has no text: %w", name, err)
			}
			printable := !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
			if len(name) > 255 || len(text) == 0 || len(text) > 1024 || !printable || strings.TrimSpace(text) == "" {
				return d, fmt.Errorf("the dimension %q is %q", name, text)
			}
			d.dimensions[name] = text
		}
	}
	if n := len(directive.Metrics); n == 0 || n > 100 {
		return d, fmt.Errorf("it has %d metrics", n)
	}
	for _, m := range directive.Metrics {
		if _, twice := d.values[m.Name]; twice || m.Name == "" || len(m.Name) > 255 || !units.MatchString(m.Unit) {
			return d, fmt.Errorf("the metric %q has the unit %q, or is there twice", m.Name, m.Unit)
		}
		var number float64 // the format also allows arrays of up to 100 values, but the observer writes none
		if err := json.Unmarshal(root[m.Name], &number); err != nil {
			return d, fmt.Errorf("the metric %q: %w", m.Name, err)
		}
		d.units[m.Name], d.values[m.Name] = m.Unit, number
	}
	for name, raw := range root { // the format allows any further members, but the observer writes only these three
		if _, metric := d.values[name]; metric || d.dimensions[name] != "" || name == "_aws" {
			continue
		}
		var text string
		if err := json.Unmarshal(raw, &text); err != nil || !slices.Contains([]string{"reason", "outcome", "record"}, name) {
			return d, fmt.Errorf("it has a member %q: %s", name, raw)
		}
		d.members[name] = text
	}
	return d, nil
}

// TestParse_RefusesWhatIsNoDocument checks parse itself: a check that accepts every line would
// prove nothing.
func TestParse_RefusesWhatIsNoDocument(t *testing.T) {
	const good = `{"_aws":{"Timestamp":1,"CloudWatchMetrics":[{"Namespace":"N","Dimensions":[["service"]],"Metrics":[{"Name":"New","Unit":"Count"}]}]},"service":"s","New":1}` + "\n"
	if _, err := parse(good); err != nil {
		t.Fatal(err)
	}
	many := strings.Repeat(`{"Name":"New","Unit":"Count"},`, 100)
	for name, change := range map[string][2]string{
		"no line":             {"}\n", "}"},
		"two lines":           {`,"New"`, "\n" + `,"New"`},
		"no timestamp":        {`"Timestamp":1,`, ``},
		"a fraction of a ms":  {`"Timestamp":1,`, `"Timestamp":1.5,`},
		"more of metadata":    {`"Timestamp":1,`, `"Timestamp":1,"more":1,`},
		"AWS's own namespace": {`"N"`, `"AWS/N"`},
		"no namespace":        {`"N"`, `""`},
		"no dimensions":       {`[["service"]]`, `[]`},
		"31 dimensions":       {`["service"]`, `["service"` + strings.Repeat(`,"service"`, 30) + `]`},
		"no value of one":     {`"service":"s",`, ``},
		"an empty one":        {`"service":"s"`, `"service":""`},
		"a number for one":    {`"service":"s"`, `"service":1`},
		"beyond ASCII":        {`"service":"s"`, `"service":"ü"`},
		"too long a one":      {`"service":"s"`, `"service":"` + strings.Repeat("s", 1025) + `"`},
		"no metrics":          {`{"Name":"New","Unit":"Count"}`, ``},
		"101 metrics":         {`{"Name":"New","Unit":"Count"}`, many + `{"Name":"New","Unit":"Count"}`},
		"one twice":           {`{"Name":"New","Unit":"Count"}`, `{"Name":"New","Unit":"Count"},{"Name":"New","Unit":"Count"}`},
		"no unit of AWS's":    {`"Count"`, `"ms"`},
		"no number":           {`"New":1`, `"New":"1"`},
		"no value":            {`,"New":1`, ``},
		"something else":      {`"New":1`, `"New":1,"key":"k"`},
		"a number for it":     {`"New":1`, `"New":1,"record":1`},
		"too long a line":     {`"New":1`, `"New":1,"reason":"` + strings.Repeat("s", 4096) + `"`},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if _, err := parse(bad); bad == good || err == nil {
			t.Errorf("%s passes:\n%s", name, bad)
		}
	}
}
