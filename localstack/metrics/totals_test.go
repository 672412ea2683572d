package metrics_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/lambdaidem/toolkit/localstack/metrics"
)

func datum(name string, dimensions map[string]string, values ...float64) metrics.Datum {
	return metrics.Datum{Namespace: "n", Name: name, Unit: "Count", Dimensions: dimensions, Values: values}
}

func all(t *metrics.Totals) (texts []string) {
	for s := range t.All() {
		texts = append(texts, fmt.Sprintf("%s %s %s %v: %d values, %g", s.Namespace, s.Name, s.Unit, s.Dimensions, s.Count, s.Sum))
	}
	return texts
}

func TestTotals_AddUpBySeries(t *testing.T) {
	var a, b metrics.Totals
	a.Add(datum("x", map[string]string{"f": "1"}, 1, 2))
	a.Add(datum("x", map[string]string{"f": "1"}, 4))
	b.Add(datum("x", map[string]string{"f": "1"}, 8))
	b.Add(datum("x", map[string]string{"f": "2"}, 16))
	b.Add(datum("x", nil, 32))
	b.Add(datum("y", nil, 64))
	before := all(&b)
	a.Merge(&b)
	a.Merge(&metrics.Totals{})
	want := []string{"n x Count map[]: 1 values, 32", "n y Count map[]: 1 values, 64", "n x Count map[f:1]: 4 values, 15", "n x Count map[f:2]: 1 values, 16"}
	if got := all(&a); !slices.Equal(got, want) {
		t.Errorf("they are %q", got)
	}
	a.Add(datum("x", nil, 1))
	if got := all(&b); !slices.Equal(got, before) {
		t.Errorf("what was merged is %q afterwards, before it was %q", got, before)
	}
}

// Different series are never merged, even if their names joined together would be equal.
func TestTotals_SeriesStayApart(t *testing.T) {
	var totals metrics.Totals
	different := []metrics.Datum{
		{Namespace: "a", Name: "b"}, {Namespace: "ab", Name: ""}, {Namespace: "a", Name: "b", Unit: "c"}, {Namespace: "a", Unit: "b"},
		{Namespace: "a", Name: "b", Dimensions: map[string]string{"c": "d"}}, {Namespace: "a", Name: "b", Dimensions: map[string]string{"cd": "e"}},
		{Namespace: "a", Name: "b", Dimensions: map[string]string{"c": "de"}}, {Namespace: "a", Name: "b", Dimensions: map[string]string{"c": "d", "e": "f"}},
		{Namespace: "a", Name: "b", Dimensions: map[string]string{"d": "c"}},
	}
	for _, d := range different {
		d.Values = []float64{1}
		totals.Add(d)
		totals.Add(d)
	}
	series := 0
	for s := range totals.All() {
		if series++; s.Count != 2 || s.Sum != 2 {
			t.Errorf("%+v", s)
		}
	}
	if series != len(different) {
		t.Errorf("there are %d series, want %d", series, len(different))
	}
}

func TestTotals_Percentiles(t *testing.T) {
	var totals metrics.Totals
	for i := range 1000 {
		totals.Add(datum("x", nil, float64(i+1)))
	}
	for s := range totals.All() {
		for p, want := range map[float64]float64{0: 1, 0.001: 1, 0.5: 500, 0.99: 990, 1: 1000} {
			if got := s.Percentile(p); math.Abs(got-want) > want/100 {
				t.Errorf("percentile %v is %v, want %v", p, got, want)
			}
		}
	}
	var low metrics.Totals
	low.Add(datum("x", nil, 0, -1, 0.001))
	for s := range low.All() {
		if half, whole := s.Percentile(0.5), s.Percentile(1); half != 0 || math.Abs(whole-0.001) > 0.00001 {
			t.Errorf("of 0, -1 and 0.001 one half is below %v, all are below %v", half, whole)
		}
	}
	if got := (&metrics.Series{}).Percentile(0.5); got != 0 {
		t.Errorf("of nothing it is %v", got)
	}
}
