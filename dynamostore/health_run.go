package dynamostore

import (
	"context"
	"fmt"
	"time"
)

// checkStore makes each check whose cached result has expired, and returns the results of all
// checks. If a check fails in a way that would make the other checks fail too, such as a timeout,
// checkStore skips the remaining checks. It returns false if ctx ended during a check.
func (c *HealthCheck) checkStore(ctx context.Context) (Health, bool) {
	limited, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	h := Health{Status: HealthPass, Checks: make([]Check, 0, len(c.probes))}
	var failedProbe *probe
	for i, p := range c.probes {
		startedAt := wall()
		switch {
		case startedAt.Before(p.expires) && !startedAt.Before(p.last.Time):
		case failedProbe != nil:
			p.skip(startedAt, failedProbe)
		default:
			check := p.run(limited)
			if ctx.Err() != nil {
				return Health{}, false
			}
			p.keep(check, startedAt)
			if p.failsAll(i == 0) {
				failedProbe = p
			}
		}
		h.Checks = append(h.Checks, p.last)
		h.Status = worse(h.Status, p.last.Status)
	}
	h.Until = wall().Add(c.opts.Cache)
	return h, true
}

// skip sets the latest result of p to the status HealthUnknown, without making the check.
// failedProbe is the earlier probe of the same run whose failure makes the check pointless; see
// failsAll.
func (p *probe) skip(now time.Time, failedProbe *probe) {
	p.last = Check{Name: p.name, Table: p.table, Time: now, Detail: fmt.Sprintf("not looked at: %s on table %q failed before", failedProbe.name, failedProbe.table)}
	p.expires = now
}

// failsAll reports whether the latest result of p means that all further checks would fail too:
// DynamoDB did not reply or can't be reached. If isFirst is true, p is the probe of the store's own
// table. failsAll then also returns true for a missing table or a wrong primary key.
func (p *probe) failsAll(isFirst bool) bool {
	code := p.last.Code
	return code == TimedOut || code == Unreachable || isFirst && (code == NoTable || code == WrongKey)
}
