package metrics

import (
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
)

// Totals add up data. The zero value has none; it is not safe for concurrent use.
type Totals struct {
	series map[string]*Series
}

// Series is what there was of one metric under one set of dimensions.
type Series struct {
	Namespace, Name, Unit string
	Dimensions            map[string]string

	Count int     // of values
	Sum   float64 // of values
	// buckets count values by their magnitude, so that a long run takes no more memory
	// than a short one.
	buckets map[int]int
}

// Add adds a datum.
func (t *Totals) Add(d Datum) {
	one := Series{Namespace: d.Namespace, Name: d.Name, Unit: d.Unit, Dimensions: d.Dimensions, buckets: map[int]int{}}
	for _, v := range d.Values {
		one.Count++
		one.Sum += v
		one.buckets[bucketOf(v)]++
	}
	t.add(&one)
}

// Merge adds all of another's.
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

// merge adds the values of another series.
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

// key tells series apart as CloudWatch does. Only a metric's name may have a control
// character, see printable, and it stands last.
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

// growth is how much larger the values of one bucket are than those of the one before.
const growth = 1.01

// none is the bucket of 0 and of what is below.
const none = math.MinInt

func bucketOf(v float64) int {
	if v <= 0 {
		return none
	}
	return int(math.Round(math.Log(v) / math.Log(growth)))
}

// Percentile returns the value that p of all values are not above, to within 1 %; p is
// from 0 to 1. Values below 0 count as 0. Without values it is 0.
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
