package main

import (
	"fmt"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// mode is how a guard treats duplicates.
type mode struct {
	name    string
	set     func(*lambdaidem.Options)
	retries bool // the duplicates say that they are retries
	waits   bool // no duplicate is refused

	// The most requests to DynamoDB for one duplicate.
	during   int // while the handler runs
	after    int // after the handler has finished
	afterOwn int // the same, in the process that has run the handler

	replaysBy string // the operation with which a duplicate gets the answer of the finished handler
}

var modes = []mode{
	{name: "rejecting", set: func(*lambdaidem.Options) {}, during: 1, after: 1, afterOwn: 1, replaysBy: "PutItem"},
	// A claim and five reads are enough to wait 200 ms; see package lambdaidem, wait.go.
	{
		name: "waiting", set: func(o *lambdaidem.Options) { o.Wait = 4 * time.Minute }, waits: true,
		during: 6, after: 1, afterOwn: 1, replaysBy: "PutItem",
	},
	{name: "cached", set: func(o *lambdaidem.Options) { o.Cache.Entries = 1000 }, during: 1, after: 1, afterOwn: 0, replaysBy: "PutItem"},
	// While the handler runs, the read finds no answer, and the claim is refused.
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
