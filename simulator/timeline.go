package simulator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// line is one line of the timeline.
type line struct {
	at    time.Duration
	actor *actor
	text  string
}

// note enters a line: who did what, now. A nil actor is the world.
func (b *book) note(a *actor, format string, args ...any) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.noteLocked(a, format, args...)
}

func (b *book) noteLocked(a *actor, format string, args ...any) {
	b.lines = append(b.lines, line{time.Since(b.w.born), a, fmt.Sprintf(format, args...)})
}

// timeline returns the book, as text.
func (b *book) timeline() string {
	lines := slices.Clone(b.lines)
	slices.SortStableFunc(lines, func(x, y line) int {
		switch {
		case x.at != y.at:
			return int(min(max(x.at-y.at, -1), 1))
		case x.actor != nil && y.actor != nil:
			return cmp.Compare(x.actor.id, y.actor.id)
		default:
			return 0
		}
	})
	var out strings.Builder
	for _, l := range lines {
		who := "world"
		if l.actor != nil {
			o := l.actor.order
			who = fmt.Sprintf("process %d (%s/%s/%s)", l.actor.id, o.Owner, o.Key, o.Payload)
		}
		fmt.Fprintf(&out, "%12.3f ms  %-22s %s\n", float64(l.at)/1e6, who, l.text)
	}
	return out.String()
}
