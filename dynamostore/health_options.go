package dynamostore

import (
	"fmt"
	"log/slog"
	"time"
)

// HealthOptions are the options of [NewHealthCheck]. The zero value of each field selects
// its default.
type HealthOptions struct {
	// Cache is how long every caller gets the same result before the store is checked
	// again. Each process has its own cache. Minimum: 1 s. Default: 5 s.
	Cache time.Duration

	// Timeout is the maximum duration of one check of the store, including all its requests and
	// their retries. Within this time, Options.Attempts and Options.AttemptTimeout of the store
	// limit each request. Minimum: 1 ms. Default: 3 s. If a connection is dead, the first try uses
	// up the AttemptTimeout, 2 s by default, and 1 s is left for a second try over a new
	// connection.
	Timeout time.Duration

	// WritesEvery is how long a successful test of a write permission is cached. The
	// permission is tested again when this time has passed. Minimum: 1 s. Default: 1 minute.
	WritesEvery time.Duration

	// SettingsEvery is how long a HealthPass or HealthWarn for the table's settings is cached. The
	// settings are read again when this time has passed. A HealthFail is not cached. If
	// dynamodb:DescribeTable or dynamodb:DescribeTimeToLive is not allowed, the settings are read
	// again after an hour, or after SettingsEvery if that is longer. Minimum: 1 s. Default: 10
	// minutes.
	SettingsEvery time.Duration

	// Enlisted lists the application's tables for which handlers enlist writes. The health check
	// tests whether the function may make these writes. Default: none.
	Enlisted []EnlistedTable

	// Details adds the result of each check to the HTTP response of [HealthCheck.ServeHTTP]. The
	// results contain names of tables, and error messages from DynamoDB that name the AWS account
	// and the IAM role. So set Details only if everyone who can send the request may know these
	// names. Default: false; the response has only the status.
	Details bool

	// Log receives a line with the status and the problems each time the status changes.
	// The level is error for fail, warning for warn, and info for pass. If the first status
	// is pass, it is not logged. Default: slog.Default().
	Log *slog.Logger
}

// leastInterval is the minimum of the intervals in HealthOptions. It keeps the costs low
// however often the HealthCheck is called.
const leastInterval = time.Second

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
