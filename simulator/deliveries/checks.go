package deliveries

// reported checks the failures that an invocation reported: every other message of the batch must
// have its effect by now. It returns the reported messages, by number.
func (w *world) reported(batch []*message, failed []string) map[int]bool {
	if w.mut.Silent && len(failed) > 0 {
		failed = failed[:len(failed)-1]
	}
	if w.mut.Deaf {
		failed = nil
	}
	names := map[string]bool{}
	for _, name := range failed {
		names[name] = true
	}
	if len(names) != len(failed) {
		w.wrong("a message was reported twice: %v", failed)
	}
	reported := map[int]bool{}
	for _, m := range batch {
		if names[m.id()] {
			reported[m.n] = true
			continue
		}
		if !w.hasEffect(m) {
			w.wrong("%s was not reported, and is not done", m.id())
		}
	}
	return reported
}

// judge checks how every message ended, and the order of the effects. It adds what is wrong to the
// report.
func (w *world) judge() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.all {
		var wrong string
		switch {
		case m.effects > 1:
			wrong = "had its effect more than once"
		case m.poison && m.effects > 0:
			wrong = "fails always, and had its effect"
		case m.poison && m.done:
			wrong = "fails always, and counts as done"
		case !m.poison && m.done && m.effects == 0:
			wrong = "counts as done, and had no effect"
		case !m.done && !m.givenUp:
			wrong = "is neither done nor given up"
		}
		if wrong != "" {
			w.report.Wrong = append(w.report.Wrong, m.id()+" "+wrong)
		}
		if m.givenUp {
			w.report.GivenUp++
		}
	}
	if w.plan.Source == Standard {
		return
	}
	for group, order := range w.order {
		last := -1
		for _, n := range order {
			if w.all[n].givenUp { // the order says nothing about a message that was given up
				continue
			}
			if n < last {
				w.report.Wrong = append(w.report.Wrong, "the effects of "+group+" are out of order")
				break
			}
			last = n
		}
	}
}
