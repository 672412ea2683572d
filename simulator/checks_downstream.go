package simulator

// downstreamKey checks the downstream key of a step that runs. A record and a step have one
// key. While the record lasts, no two payloads run under that key, unless a deployment leaves
// in doubt whether they are the same.
func (j *judge) downstreamKey(r *run, name, key string) {
	a := r.actor
	if r.record == "" {
		if key != "" {
			j.brokenLocked(a, CheckDownstreamKey, "it has a downstream key, and no record")
		}
		return
	}
	c := call{r.record, name}
	if had, ok := j.b.keyOf[c]; ok && had != key {
		j.brokenLocked(a, CheckDownstreamKey, "the key of step %s was %s, and is %s", name, had, key)
	}
	if other, ok := j.b.callOf[key]; ok && other != c {
		j.brokenLocked(a, CheckDownstreamKey, "%+v and %+v have one key", c, other)
	}
	j.b.callOf[key], j.b.keyOf[c] = c, key
	l := j.b.lifeOf(a)
	if a.failedOpen || l == nil { // the attempt knows only the record's ID
		return
	}
	if had, ok := l.keyed[name]; ok && had != a.order.Payload && !j.b.w.plan.deployments.leaveDoubt() {
		j.brokenLocked(a, CheckDownstreamKey, "step %s has its key for two payloads, %s and %s", name, had, a.order.Payload)
	}
	if l.keyed == nil {
		l.keyed = map[string]string{}
	}
	l.keyed[name] = a.order.Payload
}
