package simulator

import (
	"time"
)

// charged checks a charge: a charge that has succeeded must not run again, and all charges of a
// record must have the same payload.
func (j *judge) charged(r *run, of charge, began time.Time) {
	a := r.actor
	ttl := j.b.w.plan.ttl - 2*j.b.w.plan.skew
	if done, ok := j.b.chargedAt[of]; ok && !done.After(began) && began.Before(done.Add(ttl)) {
		j.brokenLocked(a, CheckChargeOnce, "the charge for payload %s was done %v ago", of.payload, began.Sub(done))
	}
	l := j.b.lifeOf(a)
	if l == nil || a.failedOpen { // the attempt knows only the record's ID
		return
	}
	if l.charged != "" && l.charged != of.payload {
		j.brokenLocked(a, CheckOneCharge, "payloads %s and %s were charged for one record", l.charged, of.payload)
	}
	l.charged = of.payload
}
