package metrics_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/localstack/metrics"
)

// rich is a document with all features of the format: several directives and sets, a set without
// dimensions, several values, a metric without a unit, a resolution, and other members.
const rich = `{"_aws":{"Timestamp":1767319445678,"LogGroupName":"g","CloudWatchMetrics":[` +
	`{"Namespace":"shop","Dimensions":[["service","function"],[]],"Metrics":[{"Name":"Time","Unit":"Milliseconds","StorageResolution":1},{"Name":"Odd name"}]},` +
	`{"Namespace":"other#:x","Dimensions":[["service"]],"Metrics":[{"Name":"Bytes","Unit":"Kilobytes/Second"}]}]},` +
	`"service":"s","function":"f","Time":[1.5,-2,1e3],"Odd name":0,"Bytes":[7],"trace":{"id":1},"more":null}`

func TestParse_EveryMetricUnderEverySet(t *testing.T) {
	at := time.UnixMilli(1767319445678)
	both, none, service := map[string]string{"service": "s", "function": "f"}, map[string]string{}, map[string]string{"service": "s"}
	want := []metrics.Datum{
		{"shop", "Time", "Milliseconds", both, []float64{1.5, -2, 1000}, at},
		{"shop", "Time", "Milliseconds", none, []float64{1.5, -2, 1000}, at},
		{"shop", "Odd name", "None", both, []float64{0}, at},
		{"shop", "Odd name", "None", none, []float64{0}, at},
		{"other#:x", "Bytes", "Kilobytes/Second", service, []float64{7}, at},
	}
	for _, end := range []string{"", "\n", "\r\n", " "} {
		doc, err := metrics.Parse([]byte(rich + end))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, doc.Data); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if got := slices.Sorted(maps.Keys(doc.Members)); !slices.Equal(got, []string{"function", "more", "service", "trace"}) || string(doc.Members["trace"]) != `{"id":1}` {
			t.Errorf("the members are %v", doc.Members)
		}
	}
}

func TestParse_WhatHasNothingToDoWithMetrics(t *testing.T) {
	for _, line := range []string{
		"", "\n", "START RequestId: 1", `{"message":"_aws"}`, `{"message":"the \"_aws\" of it"}`, `"_aws"`, `["_aws"]`, `{"_aws":1}`, `{"_aws":null}`,
		`{"_aws":{"Timestamp":1}}`, `{"_AWS":{"Timestamp":1,"CloudWatchMetrics":[]}}`, `{"_aws":{"Timestamp":1,"cloudwatchmetrics":[]}}`,
		"x" + rich, rich + "x", rich + rich,
	} {
		if doc, err := metrics.Parse([]byte(line)); !errors.Is(err, metrics.ErrNoDocument) || doc.Data != nil {
			t.Errorf("%s: %v, %v", line, doc, err)
		}
	}
}

const good = `{"_aws":{"Timestamp":1,"CloudWatchMetrics":[{"Namespace":"N","Dimensions":[["service"]],"Metrics":[{"Name":"New","Unit":"Count","StorageResolution":60}]}]},"service":"s","New":1}`

// times returns text repeated n times.
func times(n int, text string) string { return strings.Repeat(text, n) }

func TestParse_WhatCloudWatchRefuses(t *testing.T) {
	if _, err := metrics.Parse([]byte(good)); err != nil {
		t.Fatal(err)
	}
	one := `{"Name":"New","Unit":"Count","StorageResolution":60}`
	for name, c := range map[string]struct{ old, new, says string }{
		"no timestamp":             {`"Timestamp":1,`, ``, "Timestamp"},
		"a fraction of a ms":       {`"Timestamp":1,`, `"Timestamp":1.5,`, "Timestamp"},
		"a timestamp in text":      {`"Timestamp":1,`, `"Timestamp":"1",`, "Timestamp"},
		"none of that case":        {`"Timestamp":1,`, `"timestamp":1,`, "Timestamp"},
		"no list of directives":    {`:[{"Namespace"`, `:{"Namespace"`, ""},
		"directives that are one":  {`"CloudWatchMetrics":[`, `"CloudWatchMetrics":1,"x":[`, "CloudWatchMetrics"},
		"no namespace":             {`"Namespace":"N",`, ``, "Namespace"},
		"an empty one":             {`"N"`, `""`, "Namespace"},
		"one that begins so":       {`"N"`, `":N"`, "Namespace"},
		"AWS's own":                {`"N"`, `"AWS/N"`, "AWS's own"},
		"too long a one":           {`"N"`, `"` + times(256, "N") + `"`, "Namespace"},
		"a namespace of that case": {`"Namespace"`, `"namespace"`, "Namespace"},
		"no dimensions":            {`"Dimensions":[["service"]],`, ``, "no set"},
		"no set of them":           {`[["service"]]`, `[]`, "no set"},
		"no list of sets":          {`[["service"]]`, `["service"]`, "Dimensions"},
		"31 of them":               {`["service"]`, `["service"` + times(30, `,"service"`) + `]`, "31 dimensions"},
		"no value of one":          {`"service":"s",`, ``, `"service"`},
		"an empty value":           {`"service":"s"`, `"service":""`, `"service"`},
		"spaces for one":           {`"service":"s"`, `"service":"  "`, `"service"`},
		"a number for one":         {`"service":"s"`, `"service":1`, `"service"`},
		"null for one":             {`"service":"s"`, `"service":null`, `"service"`},
		"beyond ASCII":             {`"service":"s"`, `"service":"ü"`, `"service"`},
		"a control character":      {`"service":"s"`, `"service":"\u0007"`, `"service"`},
		"too long a value":         {`"service":"s"`, `"service":"` + times(1025, "s") + `"`, `"service"`},
		"a name with a colon":      {`"service"`, `":service"`, `":service"`},
		"too long a name of one":   {`"service"`, `"` + times(256, "s") + `"`, "dimension"},
		"no metrics":               {`[` + one + `]`, `[]`, "0 metrics"},
		"101 metrics":              {one, times(100, one+",") + one, "101 metrics"},
		"no metric's name":         {`"Name":"New",`, ``, "a name"},
		"too long a name":          {`"New"`, `"` + times(1025, "N") + `"`, "a name"},
		"no unit of CloudWatch's":  {`"Count"`, `"ms"`, "unit"},
		"a unit of another case":   {`"Count"`, `"count"`, "unit"},
		"a resolution of its own":  {`"StorageResolution":60`, `"StorageResolution":30`, "StorageResolution"},
		"no value":                 {`,"New":1`, ``, "no value"},
		"text for one ":            {`"New":1`, `"New":"1"`, "neither a number"},
		"null for a number":        {`"New":1`, `"New":null`, "neither a number"},
		"null in a list":           {`"New":1`, `"New":[1,null]`, "neither a number"},
		"a list in a list":         {`"New":1`, `"New":[[1]]`, "neither a number"},
		"an empty list":            {`"New":1`, `"New":[]`, "0 values"},
		"101 values":               {`"New":1`, `"New":[1` + times(100, ",1") + `]`, "101 values"},
		"too large a value":        {`"New":1`, `"New":2.4e108`, "beyond 2^360"},
		"too small a one":          {`"New":1`, `"New":[1,-2.4e108]`, "beyond 2^360"},
	} {
		bad := strings.ReplaceAll(good, c.old, c.new)
		doc, err := metrics.Parse([]byte(bad))
		if bad == good || err == nil || !strings.Contains(err.Error(), c.says) || doc.Data != nil {
			t.Errorf("%s: %v, %v; want an error that says %q", name, doc, err, c.says)
		}
		if known := errors.Is(err, metrics.ErrNoDocument); known != (c.says == "") {
			t.Errorf("%s: no document at all: %v", name, known)
		}
	}
}

func TestParse_LimitsAreTaken(t *testing.T) {
	names := func(n int) (list, values string) {
		for i := range n {
			list += fmt.Sprintf(`,"d%d"`, i)
			values += fmt.Sprintf(`,"d%d":"%s"`, i, times(1024, "v"))
		}
		return list, values
	}
	list, values := names(29)
	for name, c := range map[string][2]string{
		"namespace":          {`"N"`, `"` + times(255, "N") + `"`},
		"values":             {`"New":1`, `"New":[1` + times(99, ",1") + `]`},
		"the largest number": {`"New":1`, `"New":2.3e108`},
		"a value":            {`"service":"s"`, `"service":"` + times(1024, "s") + `"`},
		"a name":             {`"New"`, `"` + times(1024, "N") + `"`},
		"a hundred metrics":  {`[{"Name":"New"`, `[` + times(99, `{"Name":"New"},`) + `{"Name":"New"`},
		"no directive":       {`[{"Namespace":"N","Dimensions":[["service"]],"Metrics":[{"Name":"New","Unit":"Count","StorageResolution":60}]}]`, `[]`},
	} {
		if _, err := metrics.Parse([]byte(strings.ReplaceAll(good, c[0], c[1]))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	doc, err := metrics.Parse([]byte(strings.Replace(strings.Replace(good, `["service"]`, `["service"`+list+`]`, 1), `"service":"s"`, `"service":"s"`+values, 1)))
	if err != nil || len(doc.Data[0].Dimensions) != 30 {
		t.Errorf("30 dimensions: %v", err)
	}
}

// The units are those of MetricDatum (Amazon CloudWatch API Reference).
func TestParse_UnitsAreCloudWatchs(t *testing.T) {
	const all = "Seconds Microseconds Milliseconds Bytes Kilobytes Megabytes Gigabytes Terabytes Bits Kilobits Megabits Gigabits Terabits Percent Count " +
		"Bytes/Second Kilobytes/Second Megabytes/Second Gigabytes/Second Terabytes/Second Bits/Second Kilobits/Second Megabits/Second Gigabits/Second Terabits/Second Count/Second None"
	for _, unit := range strings.Fields(all) {
		doc, err := metrics.Parse([]byte(strings.Replace(good, `"Count"`, `"`+unit+`"`, 1)))
		if err != nil || doc.Data[0].Unit != unit {
			t.Errorf("%s: %v, %v", unit, doc, err)
		}
	}
	for _, unit := range []string{"", "bytes", "KiloBytes", "Percent/Second", "Seconds/Second", "s"} {
		if _, err := metrics.Parse([]byte(strings.Replace(good, `"Count"`, `"`+unit+`"`, 1))); err == nil {
			t.Errorf("%q is no unit", unit)
		}
	}
}

// FuzzParse checks the promises about [metrics.Datum] for any input.
func FuzzParse(f *testing.F) {
	f.Add([]byte(rich))
	f.Add([]byte(good))
	f.Add([]byte(strings.Replace(good, `"New":1`, `"New":[null]`, 1)))
	f.Fuzz(func(t *testing.T, line []byte) {
		doc, err := metrics.Parse(line)
		if err != nil && (doc.Data != nil || doc.Members != nil) {
			t.Errorf("an error, and %v", doc)
		}
		for _, d := range doc.Data {
			if d.Namespace == "" || d.Name == "" || d.Unit == "" || len(d.Dimensions) > 30 || len(d.Values) == 0 || len(d.Values) > 100 {
				t.Errorf("%+v", d)
			}
			for _, v := range d.Values {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Errorf("the value %v", v)
				}
			}
			for name, value := range d.Dimensions {
				if strings.ContainsFunc(name+value, func(r rune) bool { return r < ' ' || r > '~' }) {
					t.Errorf("the dimension %q is %q", name, value)
				}
			}
		}
	})
}
