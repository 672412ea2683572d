package metrics

import (
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
)

// Totals adds up data by series. The zero value is empty and ready for use. Totals is not safe
// for concurrent use.
type Totals struct {
	series map[string]*Series
}

// Series has the totals of one metric for one set of dimensions.
type Series struct {
	Namespace, Name, Unit string
	Dimensions            map[string]string

	Count int     // number of values
	Sum   float64 // sum of the values
	// buckets has the number of values in each range of magnitudes, so that a long run needs no
	// more memory than a short one.
	buckets map[int]int
}

// Add adds the values of a datum.
func (t *Totals) Add(d Datum) {
	one := Series{Namespace: d.Namespace, Name: d.Name, Unit: d.Unit, Dimensions: d.Dimensions, buckets: map[int]int{}}
	for _, v := range d.Values {
		one.Count++
		one.Sum += v
		one.buckets[bucketOf(v)]++
	}
	t.add(&one)
}

// Merge adds all series of other.
func (t *Totals) Merge(other *Totals) {
	for _, s := range other.series {
		t.add(s)
	}
}

func (t *Totals) add(s *Series) {
	if t.series == nil {
		t.series = map[string]*Series{}
	}
	key := s.key()
	if t.series[key] == nil {
		t.series[key] = &Series{Namespace: s.Namespace, Name: s.Name, Unit: s.Unit, Dimensions: s.Dimensions}
	}
	t.series[key].merge(s)
}

// merge adds the values of other to s.
func (s *Series) merge(other *Series) {
	s.Count += other.Count
	s.Sum += other.Sum
	if s.buckets == nil {
		s.buckets = map[int]int{}
	}
	for b, n := range other.buckets {
		s.buckets[b] += n
	}
}

// key returns a text that identifies the series, as in CloudWatch, by namespace, dimensions, unit
// and name. Only the name may contain the separator (see printable), so it comes last.
func (s *Series) key() string {
	parts := []string{s.Namespace}
	for _, name := range slices.Sorted(maps.Keys(s.Dimensions)) {
		parts = append(parts, name, s.Dimensions[name])
	}
	return strings.Join(append(parts, "", s.Unit, s.Name), "\x00")
}

// All returns the series, sorted by namespace, dimensions, unit and name.
func (t *Totals) All() iter.Seq[*Series] {
	return func(yield func(*Series) bool) {
		for _, key := range slices.Sorted(maps.Keys(t.series)) {
			if !yield(t.series[key]) {
				return
			}
		}
	}
}

// growth is the ratio between the values of one bucket and those of the bucket before it.
const growth = 1.01

// none is the bucket of zero and of negative values.
const none = math.MinInt

func bucketOf(v float64) int {
	if v <= 0 {
		return none
	}
	return int(math.Round(math.Log(v) / math.Log(growth)))
}

// Percentile returns the smallest value for which at least the share p of all values is not
// greater, with an error of at most 1 %. p is from 0 to 1. Negative values count as 0. If there
// are no values, Percentile returns 0.
func (s *Series) Percentile(p float64) float64 {
	rank := int(math.Ceil(p * float64(s.Count)))
	for _, b := range slices.Sorted(maps.Keys(s.buckets)) {
		if rank -= s.buckets[b]; rank <= 0 {
			if b == none {
				return 0
			}
			return math.Pow(growth, float64(b))
		}
	}
	return 0
}
