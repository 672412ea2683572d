package lambdaidem

import (
	"context"
	"time"
)

// The optional interfaces of a Store. The guard checks whether a Store implements them. Their
// errors are those of [Store].

// Loader is a Store that may keep answers outside their records, such as in several items.
// A record whose Result.Apart is set has such an answer.
type Loader interface {
	// Load returns the complete result of a completed record, with the Value that
	// Result.Apart stands for. It MUST return exactly the bytes that were stored, or an
	// error: a StoreError with [ReasonForeign] if the answer is missing, damaged or
	// another attempt's, so that reading it again would not help, and any other
	// StoreError if it can't be read now. The guard calls Load for replays only.
	Load(ctx context.Context, record Record) (Result, error)
}

// StepStore is a Store that keeps the results of an attempt's steps.
type StepStore interface {
	// SaveSteps replaces the record's steps by steps, and changes nothing else, if the
	// record is in progress under the lease's token. Otherwise it changes nothing and
	// returns [ErrLeaseLost] with the current record. It also succeeds if the record
	// already has exactly these steps under that token. Release and a takeover keep the
	// steps, Complete removes them.
	//
	// Steps are only added. If the record has at least as many steps, and they are not
	// these, the save is a late one: nothing changes, and the error is a StoreError with
	// [ReasonInvalid] and NotApplied. If the steps can't be stored, it is one with
	// [ReasonTooLarge] and NotApplied.
	//
	// A StepStore returns the steps with every record that is not completed. A takeover
	// returns those that the record has at that time, which may be more than the caller
	// has seen. If the lease is not the caller's, the results may be nil: the names alone
	// show that there are steps.
	SaveSteps(ctx context.Context, lease Lease, steps Steps, now time.Time) (Record, error)
}

// Preparer is a Store that needs something before it can store a result, such as a key to
// encrypt it.
type Preparer interface {
	// Prepare gets what the store needs, so that a completion soon afterwards doesn't fail
	// for lack of it. The guard calls Prepare before the handler of an optimistic attempt;
	// Acquire prepares by itself. The error is a StoreError with NotApplied.
	Prepare(ctx context.Context) error
}

// Steps maps the names of a record's steps to their results, as JSON.
type Steps map[string][]byte
