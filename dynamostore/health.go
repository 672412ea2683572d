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

// HealthStatus says how healthy a store, or one aspect of it, is. The values are those of
// draft-inadarei-api-health-check-05, section 3.1.
type HealthStatus string

// The statuses. The status of a [Health] is HealthPass if each of its checks has HealthPass
// or HealthUnknown.
const (
	HealthPass    HealthStatus = "pass" // healthy
	HealthWarn    HealthStatus = "warn" // guarded requests are served, but somebody should look at the problem
	HealthFail    HealthStatus = "fail" // guarded requests are refused, or the store could not be checked
	HealthUnknown HealthStatus = ""     // the check was not made; only a [Check] has this status
)

// Health is the result of a [HealthCheck].
type Health struct {
	// Status is the worst status of the checks.
	Status HealthStatus
	Checks []Check
	// Until is when this result expires; before then, every caller of
	// [HealthCheck.Check] gets it. Until is zero if the caller's context ended before the
	// store was checked.
	Until time.Time
}

// Check is the result for one aspect of the store.
type Check struct {
	// Name identifies the check. It is an IAM action without the service, such as
	// "GetItem"; "settings" for the table's settings (DescribeTable and
	// DescribeTimeToLive); "encryption" for the keys of Options.Encryption; or "context"
	// if the caller's context ended, which is then the only check.
	Name    string
	Table   string // the name or ARN of the table, as it was given
	Status  HealthStatus
	Code    TableCode     // the kind of the problem; empty if there is none
	Detail  string        // what is wrong, and what to do
	Time    time.Time     // when the check was made
	Latency time.Duration // how long the check took, including retries
	Err     error         // the error that caused the problem; nil if there was none
}

// Error returns c.Detail.
func (c *Check) Error() string { return c.Detail }

// Unwrap returns c.Err.
func (c *Check) Unwrap() error { return c.Err }

// Kinds of problems that a [HealthCheck] can find, besides those that are listed for
// [Store.CheckTable]. CheckTable and [Store.CheckKeys] can find TimedOut and Unreachable too.
// CheckKeys can also find NoKey.
const (
	Throttled   TableCode = "throttled"   // DynamoDB refused the request for lack of capacity
	TimedOut    TableCode = "timeout"     // DynamoDB did not reply in time
	Unreachable TableCode = "unreachable" // no connection to DynamoDB could be made
	NoKey       TableCode = "no_key"      // Options.Encryption does not return a needed key, or Find returns another key than Current
)

// HealthError is the error for an unhealthy store. It lists the checks that failed. Use
// errors.As to get it, or each *[Check] in it, from an error.
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

// Err returns a [HealthError] if the status is [HealthFail], and nil otherwise.
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

// HealthCheck checks at little cost whether a store can serve guarded requests. It can be
// called at any rate and by any number of goroutines. It returns its last result until
// [HealthOptions].Cache has passed. Then one caller checks the store again, and concurrent
// callers wait for its result. A HealthCheck reads no record: its GetItem has a key that no
// item has. A HealthCheck changes no item: its writes test permissions, with a condition that
// never holds.
//
// A HealthCheck is also an http.Handler; see [HealthCheck.ServeHTTP].
//
// It makes these calls, in this order, at these costs:
//
//	each time            GetItem                             0.5 read units
//	each WritesEvery     PutItem and UpdateItem              1 write unit each
//	                     an action on each enlisted table    2 write units each
//	each time            Options.Encryption                  nothing in DynamoDB; see below
//	each SettingsEvery   DescribeTable, DescribeTimeToLive   nothing
//
// DynamoDB charges for a write whose condition fails, by the size of the existing item or of
// the new one, whichever is larger (AWS, "DynamoDB read and write operations" and "Working
// with items and attributes"). The costs above are the minimum, because the new item has only
// a few bytes and there is no existing one. An action on an enlisted table costs more if a
// large item has the key EnlistedTable.Key.
//
// The check of Options.Encryption calls its functions Current and Find. The store caches their
// results for the duration Encryption.KeyFor, so as long as the functions succeed, most checks
// call neither.
//
// A call that fails or is throttled is repeated in each check until it succeeds. There is one
// exception: if dynamodb:DescribeTable or dynamodb:DescribeTimeToLive is not allowed, the
// settings are read again only after an hour, or after SettingsEvery if that is longer.
//
// The status is fail if guarded requests would be refused: DynamoDB does not reply or
// can't be reached, the table does not exist or has another key, an action is not
// allowed, or Options.Encryption returns no usable key. The status is warn if requests are
// served but the table throttles, or if TTL is disabled or on another attribute, so that
// records are never deleted. Settings that can't be read do not change the status, because
// the store itself never reads them.
//
// [Store.CheckTable] checks more than a HealthCheck, for the smoke test of a deployment.
type HealthCheck struct {
	store  *Store
	client *dynamodb.Client // like the client of the store, but with its own retry quota
	opts   HealthOptions

	last atomic.Pointer[Health] // the latest result; nil before the first check

	// checking is a semaphore with one slot, which the caller that checks the store holds.
	// It guards the fields probes and logged.
	checking chan struct{}
	probes   []*probe
	logged   HealthStatus // the status that was logged last; HealthPass at first
}

// HealthOptions are the options of [NewHealthCheck]. The zero value of each field selects
// its default.
type HealthOptions struct {
	// Cache is how long every caller gets the same result before the store is checked
	// again. Each process has its own cache. Minimum: 1 s. Default: 5 s.
	Cache time.Duration

	// Timeout is the maximum duration of one check of the store, including all its requests
	// and their retries. Within this time, Options.Attempts and Options.AttemptTimeout of the
	// store limit each request. Minimum: 1 ms. Default: 3 s. If a connection is dead, the
	// first attempt uses up the AttemptTimeout, 2 s by default, and 1 s is left for a second
	// attempt over a new connection.
	Timeout time.Duration

	// WritesEvery is how long a successful test of a write permission is cached. The
	// permission is tested again when this time has passed. Minimum: 1 s. Default: 1 minute.
	WritesEvery time.Duration

	// SettingsEvery is how long the result of the check of the table's settings is cached, if
	// it is pass or warn. The settings are read again when this time has passed. Minimum: 1 s.
	// Default: 10 minutes.
	SettingsEvery time.Duration

	// Enlisted lists the other tables that handlers enlist writes to. Default: none.
	Enlisted []EnlistedTable

	// Details adds the single checks to the HTTP response of [HealthCheck.ServeHTTP].
	// They contain names of tables, and messages of DynamoDB that name the AWS account
	// and the IAM role. So set Details only if everyone who can send the request may know
	// this. Default: false; the response has only the status.
	Details bool

	// Log receives a line with the status and the problems each time the status changes.
	// The level is error for fail, warning for warn, and info for pass. If the first status
	// is pass, it is not logged. Default: slog.Default().
	Log *slog.Logger
}

// leastInterval is the minimum of the intervals in HealthOptions. It keeps the costs low
// however often the HealthCheck is called.
const leastInterval = time.Second

// NewHealthCheck returns a HealthCheck for the store. It caches its results, so make one
// HealthCheck for the life of the process. NewHealthCheck panics if store is nil or an
// option is invalid.
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
	c := &HealthCheck{store: store, opts: o, checking: make(chan struct{}, 1), logged: HealthPass}
	c.client = store.wire.WithOwnQuota() // retries of checks don't use up the retry quota of guarded requests
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

// cached returns the last result. It reports false if there is none, or if it has expired.
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

// logChange logs the status and the problems if the status differs from the last one
// logged.
func (c *HealthCheck) logChange(ctx context.Context, h Health) {
	if h.Status == c.logged {
		return
	}
	c.logged = h.Status
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
