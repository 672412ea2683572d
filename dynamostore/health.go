package dynamostore

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// HealthStatus is how well something is, in the words of
// draft-inadarei-api-health-check-05, section 3.1.
type HealthStatus string

// The statuses. HealthPass is that of a whole whose parts pass or could not be
// looked at.
const (
	HealthPass    HealthStatus = "pass" // healthy
	HealthWarn    HealthStatus = "warn" // it serves, but somebody should look
	HealthFail    HealthStatus = "fail" // guarded requests are refused, or nobody knows
	HealthUnknown HealthStatus = ""     // not looked at; of a single check only
)

// Health is what a [HealthCheck] found.
type Health struct {
	// Status is the worst of the checks.
	Status HealthStatus
	Checks []Check
	// Until is until when this answer is given to all who ask. It is zero where
	// the caller's context ended first, which says nothing about the store.
	Until time.Time
}

// Check is one thing that was looked at.
type Check struct {
	// Name is the action in IAM, without its service ("GetItem"); "settings" for
	// what DescribeTable and DescribeTimeToLive say; "encryption" for the key of
	// Options.Encryption; "context" alone where the caller's context ended.
	Name    string
	Table   string // its name or ARN, as it was given
	Status  HealthStatus
	Code    TableCode     // what is wrong; empty if nothing is
	Detail  string        // what is wrong, and what to do
	Time    time.Time     // when it was looked at
	Latency time.Duration // how long that took, tries again included
	Err     error         // the cause, if it was an error
}

// Error returns the detail.
func (c *Check) Error() string { return c.Detail }

// Unwrap returns the cause.
func (c *Check) Unwrap() error { return c.Err }

// What a health check can find besides what CheckTable does.
const (
	Throttled   TableCode = "throttled"   // refused for capacity
	TimedOut    TableCode = "timeout"     // no answer in time; CheckTable finds this too
	Unreachable TableCode = "unreachable" // no connection; CheckTable finds this too
	NoKey       TableCode = "no_key"      // there is no key to encrypt with; CheckKeys finds this too
)

// HealthError is the error of an unhealthy store: the checks that failed.
// errors.As finds it, and each *[Check] in it.
type HealthError []*Check

// Error returns one line for each check.
func (e HealthError) Error() string { return detailsOf(e) }

// Unwrap returns the checks.
func (e HealthError) Unwrap() []error {
	errs := make([]error, len(e))
	for i, c := range e {
		errs[i] = c
	}
	return errs
}

// Err is nil unless the status is [HealthFail]; then it is a [HealthError].
func (h Health) Err() error {
	if h.Status != HealthFail {
		return nil
	}
	var failed HealthError
	for i := range h.Checks {
		if h.Checks[i].Status == HealthFail {
			failed = append(failed, &h.Checks[i])
		}
	}
	return failed
}

// HealthCheck looks whether a store can serve, at next to no cost. It may be
// asked at any rate, from any number of goroutines: it answers from what it found,
// for [HealthOptions].Cache, and looks anew for one caller at a time while the
// others wait for what that one finds. It writes nothing, and reads no record: its
// writes stand under a condition that holds for no item.
//
// It is an http.Handler, too: see [HealthCheck.ServeHTTP].
//
// What it asks, in this order, and what that costs by AWS's rules ("DynamoDB read
// and write operations", "Working with items and attributes": a write whose
// condition fails still consumes, by the larger of the item that is there and the
// one that was to be; ours are some bytes, and are never there):
//
//	each time            GetItem                             0.5 read units
//	each WritesEvery     PutItem, UpdateItem, refused        1 write unit each
//	                     actions on enlisted tables, refused 2 write units each
//	each SettingsEvery   DescribeTable, DescribeTimeToLive   nothing
//	each time            Options.Encryption                  nothing of the table; once in KeyFor
//
// What fails, or is throttled, is asked anew each time until it does not.
//
// It fails where guarded requests would be refused: no answer, no connection, no
// table, another key, an action that is not allowed. It warns where they are
// served: the table throttles, or TTL is off or looks at another attribute, so
// that records stay for ever. Settings that can't be read are no warning: the
// store does not need them. If dynamodb:DescribeTable or DescribeTimeToLive is
// not allowed, that is asked again after an hour at the soonest.
//
// [Store.CheckTable] looks at more, for a deployment's smoke test.
type HealthCheck struct {
	store  *Store
	client *dynamodb.Client // the store's, with a retry quota of its own
	opts   HealthOptions

	last atomic.Pointer[Health]

	// looking is held by the caller that looks; probes and told are its.
	looking chan struct{}
	probes  []*probe
	told    HealthStatus
}

// HealthOptions are what [NewHealthCheck] can be told. The zero value of every
// field is its documented default.
type HealthOptions struct {
	// Cache is how long an answer is given to all who ask. At least 1 s, default
	// 5 s. Each process has a cache of its own.
	Cache time.Duration

	// Timeout bounds one look at the store, all its requests and their retries
	// together; the time and number of a request's attempts are the store's. At
	// least 1 ms. Default 3 s: room for one attempt over a connection that died
	// unseen (Options.AttemptTimeout) and for another.
	Timeout time.Duration

	// WritesEvery is how long an action that writes is taken to be allowed, once
	// it was seen to be. At least 1 s, default 1 minute.
	WritesEvery time.Duration

	// SettingsEvery is how long the table's settings are taken to be as they were
	// read. At least 1 s, default 10 minutes.
	SettingsEvery time.Duration

	// Enlisted are the other tables that handlers enlist writes to.
	Enlisted []EnlistedTable

	// Details has the HTTP document tell the checks, with the names of tables and
	// with DynamoDB's own words, which have account and role. It is for those who
	// may see a log. Default: the status alone.
	Details bool

	// Log gets a line each time that the status changes, with what is wrong: an
	// error for fail, a warning for warn. The first pass is no change. Default:
	// slog.Default().
	Log *slog.Logger
}

const leastInterval = time.Second // so that a check may be asked at any rate

// NewHealthCheck returns a health check of the store. Make one for the life of the
// process: what it found is kept in it. It panics on a nil store and on an invalid
// option, and names it.
func NewHealthCheck(store *Store, optFns ...func(*HealthOptions)) *HealthCheck {
	if store == nil {
		panic("dynamostore: NewHealthCheck: store is nil; pass what New returned")
	}
	var o HealthOptions
	for _, fn := range optFns {
		fn(&o)
	}
	orDefault(&o.Cache, 5*time.Second)
	orDefault(&o.Timeout, 3*time.Second)
	orDefault(&o.WritesEvery, time.Minute)
	orDefault(&o.SettingsEvery, 10*time.Minute)
	orDefault(&o.Log, slog.Default())
	if problem := o.problem(); problem != "" {
		panic("dynamostore: NewHealthCheck: HealthOptions." + problem)
	}
	c := &HealthCheck{store: store, opts: o, looking: make(chan struct{}, 1), told: HealthPass}
	c.client = store.wire.WithOwnQuota() // a check takes no request's place in the retry quota
	c.probes = c.allProbes()
	return c
}

func (o *HealthOptions) problem() string {
	for _, interval := range []struct {
		field string
		is    time.Duration
	}{{"Cache", o.Cache}, {"WritesEvery", o.WritesEvery}, {"SettingsEvery", o.SettingsEvery}} {
		if interval.is < leastInterval {
			return fmt.Sprintf("%s is %v; it must be at least %v", interval.field, interval.is, leastInterval)
		}
	}
	if o.Timeout < time.Millisecond {
		return fmt.Sprintf("Timeout is %v; it must be at least 1ms", o.Timeout)
	}
	for i := range o.Enlisted {
		if problem := o.Enlisted[i].problem(); problem != "" {
			return fmt.Sprintf("Enlisted[%d].%s", i, problem)
		}
	}
	return ""
}

// Check returns how the store is: what was found last, if that is younger than
// HealthOptions.Cache, else what it finds now. It returns by the end of ctx. If
// that comes first, the status is [HealthFail], of this answer alone: nothing was
// found, and the next caller looks.
func (c *HealthCheck) Check(ctx context.Context) Health {
	if h, ok := c.found(); ok {
		return h
	}
	select {
	case c.looking <- struct{}{}:
		defer func() { <-c.looking }()
	case <-ctx.Done():
		return ended(ctx)
	}
	if h, ok := c.found(); ok { // by the one that looked while this one waited
		return h
	}
	h, ok := c.look(ctx)
	if !ok {
		return ended(ctx)
	}
	c.last.Store(&Health{Status: h.Status, Checks: slices.Clone(h.Checks), Until: h.Until})
	c.tell(ctx, h)
	return h
}

// found returns what was found last, if it still holds.
func (c *HealthCheck) found() (Health, bool) {
	h := c.last.Load()
	if h == nil {
		return Health{}, false
	}
	mine := *h
	mine.Checks = slices.Clone(h.Checks) // they are the caller's own, to change or to keep
	now := wall()
	return mine, now.Before(h.Until) && !now.Before(h.Until.Add(-c.opts.Cache))
}

// wall returns the time without its monotonic reading, which may stand still while the
// process is frozen.
func wall() time.Time { return time.Now().Round(0) }

// ended returns the answer where the caller's context ended first.
func ended(ctx context.Context) Health {
	cause := context.Cause(ctx)
	return Health{Status: HealthFail, Checks: []Check{{
		Name: "context", Status: HealthFail, Time: wall(), Err: cause,
		Detail: fmt.Sprintf("the caller's context ended before the health check did (%v); give it more time than HealthOptions.Timeout", cause),
	}}}
}

// tell logs a change.
func (c *HealthCheck) tell(ctx context.Context, h Health) {
	if h.Status == c.told {
		return
	}
	c.told = h.Status
	level := slog.LevelInfo
	switch h.Status {
	case HealthFail:
		level = slog.LevelError
	case HealthWarn:
		level = slog.LevelWarn
	case HealthPass, HealthUnknown:
	}
	var wrong []*Check
	for i := range h.Checks {
		if s := h.Checks[i].Status; s == HealthFail || s == HealthWarn {
			wrong = append(wrong, &h.Checks[i])
		}
	}
	c.opts.Log.Log(ctx, level, "the health of the idempotency store has changed", "health", string(h.Status), "detail", detailsOf(wrong))
}
