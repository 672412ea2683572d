package metrics

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/emf"
)

// The metrics of package emf, beside its counts of outcomes, that stand in a summary.
const (
	duration      = "Duration" // one value for each call that was begun and came to an end
	storeDuration = "StoreDuration"
)

// Summary says in one line what the metrics of package emf tell: what came of the
// calls of each function; which share of the calls that came to an end was duplicates,
// answered from a record or told that it is in progress; how many attempts took the
// place of one that died; and what the store took of a call at the median. It is empty
// if there was no call.
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

// counts tells whether a series is one of that metric by service and function, and not
// the same values again by route, and whose it is.
func (s *Series) counts(m emf.Metric) (function string, ok bool) {
	function = s.Dimensions["function"]
	return function, s.Name == m.Name && s.Unit == string(m.Unit) && len(s.Dimensions) == 2 && function != "" && s.Dimensions["service"] != ""
}
