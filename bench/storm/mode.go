package main

import (
	"fmt"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// mode is a way in which a guard treats duplicates.
type mode struct {
	name    string
	set     func(*lambdaidem.Options)
	retries bool // duplicates carry the header of a retry
	waits   bool // duplicates wait for the answer and are never refused

	// The maximum number of requests to DynamoDB that one duplicate may send.
	during   int // while the handler runs
	after    int // after the handler has finished
	afterOwn int // after the handler has finished, in the process that ran it

	replaysBy string // the operation that reads the stored answer for a replay
}

var modes = []mode{
	{name: "rejecting", set: func(*lambdaidem.Options) {}, during: 1, after: 1, afterOwn: 1, replaysBy: "PutItem"},
	// To wait 200 ms takes one claim and at most five reads; see wait.go of package lambdaidem.
	{
		name: "waiting", set: func(o *lambdaidem.Options) { o.Wait = 4 * time.Minute }, waits: true,
		during: 6, after: 1, afterOwn: 1, replaysBy: "PutItem",
	},
	{name: "cached", set: func(o *lambdaidem.Options) { o.Cache.Entries = 1000 }, during: 1, after: 1, afterOwn: 0, replaysBy: "PutItem"},
	// While the handler runs, a duplicate sends a read, which finds no answer, and a claim, which is refused.
	{
		name: "read first", set: func(o *lambdaidem.Options) { o.Repeated = lambdaidem.SentAgain }, retries: true,
		during: 2, after: 1, afterOwn: 1, replaysBy: "GetItem",
	},
}

func modeOf(name string) (mode, error) {
	for _, m := range modes {
		if m.name == name {
			return m, nil
		}
	}
	return mode{}, fmt.Errorf("there is no mode %q", name)
}
