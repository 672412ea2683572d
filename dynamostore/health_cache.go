package dynamostore

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Check returns the health of the store. If the last result is younger than
// HealthOptions.Cache, Check returns that result; otherwise it checks the store. If ctx
// ends first, Check returns a Health with the status [HealthFail], which is not cached;
// the next caller checks the store again.
func (c *HealthCheck) Check(ctx context.Context) Health {
	if h, ok := c.cached(); ok {
		return h
	}
	select {
	case c.checking <- struct{}{}:
		defer func() { <-c.checking }()
	case <-ctx.Done():
		return contextEnded(ctx)
	}
	if h, ok := c.cached(); ok { // another caller checked the store while this one waited
		return h
	}
	h, ok := c.checkStore(ctx)
	if !ok {
		return contextEnded(ctx)
	}
	c.last.Store(&Health{Status: h.Status, Checks: slices.Clone(h.Checks), Until: h.Until})
	c.logChange(ctx, h)
	return h
}

// cached returns the last result. The second result is false if no check was made yet, or if the
// last result has expired.
func (c *HealthCheck) cached() (Health, bool) {
	h := c.last.Load()
	if h == nil {
		return Health{}, false
	}
	mine := *h
	mine.Checks = slices.Clone(h.Checks) // the caller may change them
	now := wall()
	return mine, now.Before(h.Until) && !now.Before(h.Until.Add(-c.opts.Cache))
}

// wall returns the current time without a monotonic clock reading. The monotonic clock may
// stop while the process is frozen, so it can't tell how old a result is.
func wall() time.Time { return time.Now().Round(0) }

// contextEnded returns the result for a caller whose context ended before the store was
// checked.
func contextEnded(ctx context.Context) Health {
	cause := context.Cause(ctx)
	return Health{Status: HealthFail, Checks: []Check{{
		Name: "context", Status: HealthFail, Time: wall(), Err: cause,
		Detail: fmt.Sprintf("the caller's context ended before the health check did (%v); give it more time than HealthOptions.Timeout", cause),
	}}}
}

// keep stores the result of a check of p, and decides how long p caches it. A check that failed is
// not cached, so that the next health check repeats it. The exception is a denied read of the
// table's settings.
func (p *probe) keep(check Check, startedAt time.Time) {
	now := wall()
	check.Name, check.Table, check.Time, check.Latency = p.name, p.table, now, now.Sub(startedAt)
	p.last, p.expires = check, now
	switch {
	case check.Status == HealthUnknown && check.Code == NoPermission:
		// The credentials don't allow reading the table's settings. Read them again only after a
		// long time, because each denied call leaves an entry in CloudTrail.
		p.expires = now.Add(max(p.cacheFor, deniedCacheFor))
	case check.Status == HealthPass, check.Status == HealthWarn && check.Code != Throttled:
		p.expires = now.Add(p.cacheFor)
	}
}

// deniedCacheFor is the minimum time between two reads of the table's settings if the credentials
// don't allow the read. Each denied call adds an AccessDenied to the account's CloudTrail.
const deniedCacheFor = time.Hour
