package dynamostore

import (
	"log/slog"
	"sync/atomic"
	"time"

	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// HealthStatus is the result of a check, or of all checks together. The values are those of
// draft-inadarei-api-health-check-05, section 3.1.
type HealthStatus string

// The statuses. The status of a [Health] is the worst status of its checks, where HealthUnknown
// counts as HealthPass.
const (
	HealthPass HealthStatus = "pass" // healthy
	// HealthWarn means that guarded requests are served, but that the table throttles requests, or
	// that records are never deleted, because TTL is disabled or set to the wrong attribute.
	HealthWarn HealthStatus = "warn"
	// HealthFail means that the store could not be checked, or that guarded requests are refused:
	//
	//   - DynamoDB does not reply or can't be reached.
	//   - The table does not exist, or its primary key is not the one that the store needs.
	//   - An IAM action is not allowed.
	//   - Options.Encryption returns no usable key.
	HealthFail    HealthStatus = "fail"
	HealthUnknown HealthStatus = "" // the check was not made; only a [Check] has this status
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

// HealthError is the error for an unhealthy store. It lists the checks that failed. Use errors.As
// with a HealthError to get the list from an error, or with a *[Check] to get the first check that
// failed.
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

// HealthCheck checks at little cost whether a store can serve guarded requests. It can be called at
// any rate and by any number of goroutines. It returns its last result until [HealthOptions].Cache
// has passed. Then one caller checks the store again, and concurrent callers wait for its result. A
// HealthCheck is also an http.Handler; see [HealthCheck.ServeHTTP].
//
// A HealthCheck reads no record and changes no item: its GetItem has a key that no item has, and
// its writes have a condition that never holds. When it checks the store, it makes the calls listed
// below, in this order. The list says how often each call is made (at each check of the store, or
// once in each interval that an option sets) and what it costs.
//
//	each check              GetItem                             0.5 read units
//	once per WritesEvery    PutItem and UpdateItem              1 write unit each
//	                        each of EnlistedTable.Actions       2 write units each
//	each check              Options.Encryption                  nothing in DynamoDB; see below
//	once per SettingsEvery  DescribeTable, DescribeTimeToLive   nothing
//
// The test of one of EnlistedTable.Actions costs more if a large item has the key
// EnlistedTable.Key. DynamoDB charges for a write even if its condition fails. The charge depends
// on the size of the existing item or of the new one, whichever is larger (AWS, "DynamoDB read and
// write operations" and "Working with items and attributes").
//
// To check Options.Encryption, a HealthCheck calls Encryption.Current and Encryption.Find, unless
// the store still has their results in its cache; see Encryption.KeyFor.
//
// A call that fails or is throttled is repeated in each check until it succeeds. Settings that
// can't be read do not change the status, because the store itself never reads them.
//
// [Store.CheckTable] checks more than a HealthCheck, for the smoke test of a deployment.
type HealthCheck struct {
	store  *Store
	client *dynamodb.Client // like the client of the store, but with its own retry quota
	opts   HealthOptions

	last atomic.Pointer[Health] // the latest result; nil before the first check

	// checking is a semaphore with one slot. The caller that checks the store holds the slot. The
	// semaphore guards the fields probes and logged.
	checking chan struct{}
	probes   []*probe
	logged   HealthStatus // the status that was logged last; HealthPass at first
}

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

// detailsOf returns the details of the checks, one per line.
func detailsOf(checks []*Check) string {
	lines := make([]string, len(checks))
	for i, check := range checks {
		lines[i] = check.Detail
	}
	return strings.Join(lines, "\n")
}
