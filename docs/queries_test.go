package docs_test

import (
	"context"
	"log/slog"
	"regexp"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// By default the guard logs only what needs attention. A query of log lines for an outcome
// that is not logged finds nothing, and looks as if all were well.
func TestQueries_AskOnlyForOutcomesThatAreLogged(t *testing.T) {
	queries := regexp.MustCompile(`filter outcome (?:=|in) ([^|\n]*?) and ispresent\(message\)`)
	outcome := regexp.MustCompile(`"(\w+)\\?"`)
	found := 0
	for _, page := range []string{"docs/operate.md", "docs/metrics.md", "docs/deploy.md", "monitoring.yaml"} {
		for _, query := range queries.FindAllStringSubmatch(read(t, page), -1) {
			for _, kind := range outcome.FindAllStringSubmatch(query[1], -1) {
				found++
				var l levels
				lambdaidem.SlogObserver(slog.New(&l)).Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.Kind(kind[1])})
				if len(l) != 1 || l[0] < slog.LevelWarn {
					t.Errorf("%s asks for log lines of the outcome %s, which is logged at %v", page, kind[1], l)
				}
			}
		}
	}
	if found < 5 {
		t.Errorf("the pages ask for %d outcomes", found)
	}
}

// levels is a slog.Handler that records the levels of the logged lines.
type levels []slog.Level

func (*levels) Enabled(context.Context, slog.Level) bool { return true }

func (l *levels) Handle(_ context.Context, r slog.Record) error { //nolint:gocritic // slog.Handler has this signature
	*l = append(*l, r.Level)
	return nil
}

func (l *levels) WithAttrs([]slog.Attr) slog.Handler { return l }

func (l *levels) WithGroup(string) slog.Handler { return l }
