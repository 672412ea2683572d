package redelivery

import (
	"fmt"
	"slices"
)

// answerFindings checks the answer of the invocation, and then its runs.
func (v *verdict) answerFindings() {
	if v.Odd != "" {
		v.find("there was no answer but %s", v.Odd)
		return
	}
	seen := map[string]bool{}
	for _, name := range v.Reported {
		switch {
		case seen[name]:
			v.find("%s is reported twice", name)
		case !slices.Contains(v.Batch, name):
			v.find("%s is reported, and is none of the batch", name)
		}
		seen[name] = true
	}
	for _, name := range distinct(v.Batch) {
		if seen[name] {
			if why := v.unjust(name); why != "" {
				v.find("%s is reported, %s (V2)", name, why)
			}
		} else if v.After[name].Effects == 0 {
			v.find("%s is not reported, and is not done (V2)", name)
		}
	}
	v.runFindings()
}

// unjust returns why a message should not have been reported as failed, or "" if the report is
// right.
func (v *verdict) unjust(name string) string {
	if deed, ran := v.deed(name); ran {
		if deed.fails() || v.Left < v.MinRunTime { // without time, even a successful handler's commit can fail
			return ""
		}
		return fmt.Sprintf("and its handler did %s", deed)
	}
	switch {
	case v.heldBack(name), v.Left < v.MinRunTime, v.Before[name].Effects == 0 && v.inProgress(name):
		return ""
	case v.Before[name].Effects > 0:
		return "and was done before"
	}
	return "and nothing was in its way"
}

// heldBack reports whether the source is ordered and an earlier message of the same group is
// reported.
func (v *verdict) heldBack(name string) bool {
	m, _ := v.message(name)
	for _, earlier := range v.Batch[:slices.Index(v.Batch, name)] {
		if e, _ := v.message(earlier); v.Ordered && e.Group == m.Group && slices.Contains(v.Reported, earlier) {
			return true
		}
	}
	return false
}

// inProgress reports whether another invocation may have held the message's lease during this
// one. That is an invocation that ran the message at the same time, or one that died with the
// message in its batch and whose lease may have lasted until then. The process may have died
// before the handler began, so a run is not required.
func (v *verdict) inProgress(name string) bool {
	return slices.ContainsFunc(v.Deliveries, func(o Delivery) bool {
		over, had := o.Ended, slices.Contains(v.Counts[name].Runs, o.Request)
		if o.Lost {
			over, had = over.Add(v.Lease), slices.Contains(o.Batch, name)
		}
		return had && o.Request != v.Request && o.Began.Before(v.Ended) && over.After(v.Began)
	})
}
