package metrics

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/emf"
)

// These metrics of package emf are part of a summary, in addition to the counts of outcomes.
const (
	duration      = "Duration" // one value for each call that began and ended
	storeDuration = "StoreDuration"
)

// Summary describes the metrics of package emf in one line. It has the number of each outcome for
// each function, the percentage of duplicates among the calls that ended, the number of
// takeovers, and the median of the time that a call spent in the store. A duplicate is a call
// that was replayed or whose record was in progress. Summary returns "" if there was no call.
func Summary(t *Totals) string {
	byFunction := map[string][]string{}
	var ended, duplicates, takeovers float64
	var store Series
	for _, m := range emf.Metrics() {
		for s := range t.All() {
			function, counted := s.counts(m)
			if !counted {
				continue
			}
			switch {
			case m.Name == duration:
				ended += float64(s.Count)
			case m.Name == storeDuration:
				store.merge(s)
			case m.Kind == lambdaidem.EventReplayed, m.Kind == lambdaidem.EventInProgress:
				duplicates += s.Sum
			case m.Kind == lambdaidem.EventTakenOver:
				takeovers += s.Sum
			}
			if m.Kind != "" {
				said := fmt.Sprintf("%.0f %s", s.Sum, strings.ReplaceAll(string(m.Kind), "_", " "))
				byFunction[function] = append(byFunction[function], said)
			}
		}
	}
	var parts []string
	for _, function := range slices.Sorted(maps.Keys(byFunction)) {
		parts = append(parts, function+" "+strings.Join(byFunction[function], ", "))
	}
	if ended > 0 {
		parts = append(parts, fmt.Sprintf("duplicates %.0f %%", 100*duplicates/ended), fmt.Sprintf("takeovers %.0f", takeovers))
	}
	if store.Count > 0 {
		parts = append(parts, fmt.Sprintf("store p50 %.1f ms", store.Percentile(0.5)))
	}
	return strings.Join(parts, "; ")
}

// counts reports whether s is the series of metric m for one function, and returns the function.
// It returns false for a series by route, which repeats the same values.
func (s *Series) counts(m emf.Metric) (function string, ok bool) {
	function = s.Dimensions["function"]
	return function, s.Name == m.Name && s.Unit == string(m.Unit) && len(s.Dimensions) == 2 && function != "" && s.Dimensions["service"] != ""
}
