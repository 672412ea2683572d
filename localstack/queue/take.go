package queue

import (
	"container/list"
	"time"
)

// take delivers up to t.max visible messages. Where it finds none, next is when
// one becomes visible by itself; zero: never.
func (q *Queue) take(now time.Time, t taking) (taken []Message, next time.Time, err error) {
	blocked := q.land(now)
	room := q.service.options.InFlight - len(q.flight)
	if room <= 0 {
		if !q.fifo {
			return nil, time.Time{}, overLimit.error("The maximum number of in flight messages is reached.")
		}
		// "If you reach this limit, Amazon SQS returns no error messages"
		// ("ChangeMessageVisibility", of FIFO queues).
		return nil, q.nextLanding(), nil
	}
	t.max = min(t.max, room)
	var chosen []*list.Element
	if q.fifo {
		chosen, next = q.chooseFIFO(now, t.max, blocked)
	} else {
		chosen, next = q.chooseStandard(now, t.max)
	}
	for _, e := range chosen {
		m := at(e)
		was := *m
		q.deliver(m, now, t.visibility)
		view := m.view(q)
		if !t.budget.fits(view) {
			*m = was
			break
		}
		q.flight[m.serial] = m
		taken = append(taken, view)
		q.duplicate(m, now)
	}
	return taken, next, nil
}

// land forgets what is in flight no more, and returns the groups of what is.
func (q *Queue) land(now time.Time) (groups map[string]bool) {
	groups = map[string]bool{}
	for serial, m := range q.flight {
		switch {
		case q.expired(m, now):
			q.remove(q.bySerial[serial])
		case m.inFlight(now):
			groups[m.group] = true
		default:
			delete(q.flight, serial)
		}
	}
	return groups
}

// nextLanding is the first end of a visibility timeout.
func (q *Queue) nextLanding() time.Time {
	var next time.Time
	for _, m := range q.flight {
		next = earlier(next, m.hiddenUntil)
	}
	return next
}

// earlier is the earlier of two times of which the first may be zero.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// visible visits the visible messages in the order of arrival until visit
// returns false. On its way it drops what has expired and buries what was
// received too often, but for groups that are blocked. It returns when the next
// message becomes visible.
func (q *Queue) visible(now time.Time, blocked map[string]bool, visit func(*list.Element) bool) (next time.Time) {
	for e := q.messages.Front(); e != nil; {
		m, following := at(e), e.Next()
		available := m.availableAt(q.settings)
		switch {
		case q.expired(m, now):
			q.remove(e)
		case now.Before(available):
			next = earlier(next, available)
		case q.fifo && blocked[m.group]:
			// The landing of what blocks it is in next: that is a message too.
		case q.bury(e, now):
		case !visit(e):
			return next
		}
		e = following
	}
	return next
}

// chooseStandard takes the first messages or, with Faults.Reorder, any.
func (q *Queue) chooseStandard(now time.Time, most int) (chosen []*list.Element, next time.Time) {
	reorder := q.service.options.Faults.Reorder
	next = q.visible(now, nil, func(e *list.Element) bool {
		chosen = append(chosen, e)
		return reorder || len(chosen) < most
	})
	if reorder {
		q.service.random.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
	}
	return chosen[:min(most, len(chosen))], next
}

// chooseFIFO takes messages of groups of which none is in flight. It "first
// attempts to return as many messages with the same message group ID as
// possible" ("FIFO queue delivery logic in Amazon SQS"), from the group that has
// waited longest, and keeps the order of each group.
func (q *Queue) chooseFIFO(now time.Time, most int, blocked map[string]bool) (chosen []*list.Element, next time.Time) {
	var groups []string
	byGroup := map[string][]*list.Element{}
	next = q.visible(now, blocked, func(e *list.Element) bool {
		group := at(e).group
		if byGroup[group] == nil {
			groups = append(groups, group)
		}
		byGroup[group] = append(byGroup[group], e)
		return len(byGroup[groups[0]]) < most
	})
	for _, group := range groups {
		chosen = append(chosen, byGroup[group]...)
	}
	return chosen[:min(most, len(chosen))], next
}

// deliver begins a message's visibility timeout under a new receipt.
func (q *Queue) deliver(m *message, now time.Time, visibility *time.Duration) {
	hidden := q.settings.seconds(attrVisibility)
	if visibility != nil {
		hidden = *visibility
	}
	if m.receives == 0 {
		m.firstReceived = now
	}
	m.receives++
	m.receipt++
	m.received = now
	m.hiddenUntil = now.Add(hidden)
}

// duplicate is Faults.Redeliver: as if one of the servers that store a message
// had been unavailable when it was received, or deleted, and now is back
// ("Amazon SQS at-least-once delivery").
func (q *Queue) duplicate(m *message, now time.Time) {
	faults, random := q.service.options.Faults, q.service.random
	if q.fifo || m.copied || faults.Redeliver == 0 || random.Float64() >= faults.Redeliver {
		return
	}
	again := *m
	again.serial, again.copied = q.service.next(), true
	if hidden := m.hiddenUntil.Sub(now); hidden > 0 {
		again.hiddenUntil = now.Add(time.Duration(random.Int64N(int64(hidden))))
	}
	q.append(&again)
	q.flight[again.serial] = &again
}
