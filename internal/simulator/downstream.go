package simulator

import "github.com/lambdaidem/toolkit/lambdaidem"

// downstreamKey looks at the downstream key of a step that runs. A key belongs to
// one record and step. While the record lasts, a payload has one key, and two
// payloads have two.
func (j *judge) downstreamKey(r *run, name, key string) {
	a := r.actor
	if r.record == "" {
		if key != "" {
			j.brokenLocked(a, CheckDownstreamKey, "it has a downstream key, and no record")
		}
		return
	}
	c := call{r.record, name}
	if other, ok := j.b.callOf[key]; ok && other != c {
		j.brokenLocked(a, CheckDownstreamKey, "%+v and %+v have one key", c, other)
	}
	j.b.callOf[key] = c
	l := j.b.lifeOf(a)
	if a.open || l == nil { // it knows no more of the record than its id, unless it saw the record before
		first := lambdaidem.Record{ID: r.record}.DownstreamKey(name)
		if l = j.b.lastLife(a); key != first && (l == nil || !l.hasKey(name, key)) {
			j.brokenLocked(a, CheckDownstreamKey, "without a record the key of step %s is %s, want %s", name, key, first)
		}
		return
	}
	for had, payload := range l.keys[name] {
		switch same := payload == a.order.Payload; {
		case same && had != key:
			j.brokenLocked(a, CheckDownstreamKey, "the key of step %s was %s, and is %s", name, had, key)
		case !same && had == key:
			j.brokenLocked(a, CheckDownstreamKey, "step %s has the key %s for two payloads, %s and %s", name, key, payload, a.order.Payload)
		}
	}
	if l.keys[name] == nil {
		l.keys[name] = map[string]string{}
	}
	l.keys[name][key] = a.order.Payload
}

// hasKey reports whether an attempt of the life ran a step under the key.
func (l *life) hasKey(step, key string) bool {
	_, has := l.keys[step][key]
	return has
}
