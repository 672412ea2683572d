package commands

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
)

// watchView is the summary that watch prints after each search for leases. With --output
// json, each summary is one line.
type watchView struct {
	DatabaseTime time.Time `json:"databaseTime"`
	Dead         int       `json:"dead"`
	Held         int       `json:"held"`
	Oldest       int64     `json:"oldestSeconds"`
	New          int       `json:"new"`  // leases that the previous search did not find
	Gone         int       `json:"gone"` // leases that only the previous search found
	More         bool      `json:"more"`
	Unreadable   int       `json:"unreadable,omitempty"` // items that can't be read as records, each of which may be a lease
}

func newWatch(a *app) *cobra.Command {
	var (
		o     search
		every time.Duration
		looks int
	)
	c := &cobra.Command{
		Use:   "watch",
		Short: "List the leases repeatedly, and report what changed",
		Args:  arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if every < time.Second || looks < 0 {
				return usage(errors.New("--interval must be at least 1s, --looks not below 0"))
			}
			s, _, err := a.store(c.Context())
			if err != nil {
				return err
			}
			var before map[string]bool
			for n := 1; ; n++ {
				found, err := o.look(a, c.Context(), s)
				if err != nil {
					return err
				}
				v, now := found.since(before)
				if err := a.printLook(v); err != nil {
					return err
				}
				if n == looks {
					return nil
				}
				before = now
				select {
				case <-time.After(every):
				case <-c.Context().Done():
					return context.Cause(c.Context())
				}
			}
		},
	}
	o.flags(c.Flags())
	c.Flags().DurationVar(&every, "interval", 30*time.Second, "how long to wait between two searches")
	c.Flags().IntVar(&looks, "looks", 0, "how many searches to make; 0: until watch is stopped")
	return c
}

// since compares the leases with those of the previous search, and returns the summary
// and the ids of the records found. before has the ids of the previous search; it is nil
// for the first search.
func (v *leasesView) since(before map[string]bool) (watchView, map[string]bool) {
	w := watchView{DatabaseTime: v.DatabaseTime, More: v.More, Unreadable: v.Unreadable}
	now := map[string]bool{}
	for _, l := range v.Leases {
		now[l.ID] = true
		if w.Oldest = max(w.Oldest, l.Over); l.State == "held" {
			w.Held++
		} else {
			w.Dead++
		}
		if before != nil && !before[l.ID] {
			w.New++
		}
	}
	for id := range before {
		if !now[id] {
			w.Gone++
		}
	}
	return w, now
}

func (a *app) printLook(v watchView) error {
	if a.output == outputJSON {
		return printJSON(a.Out, v, false)
	}
	oldest, more, unreadable := "", "", ""
	if v.Dead+v.Held > 0 {
		oldest = ", the oldest overdue by " + span(time.Duration(v.Oldest)*time.Second)
	}
	if v.More {
		more = ", and more beyond --limit"
	}
	if v.Unreadable > 0 {
		unreadable = "; " + counted(v.Unreadable, "item", "items") + " can't be read: see idem leases"
	}
	say(a.Out, "%s  %d dead, %d held%s; %d new, %d gone%s%s\n", v.DatabaseTime.Format(time.RFC3339), v.Dead, v.Held, oldest, v.New, v.Gone, more, unreadable)
	return nil
}
