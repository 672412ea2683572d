package chaos

import (
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Books holds everything that is known after a run.
type Books struct {
	Answers   []Answer   // every answer of every client
	Payments  []Payment  // the whole payments table, without the refunds
	Transfers []Transfer // the whole transfers table
	Effects   []Effect   // everything that the clearing house did
	Records   []Record   // the records of client requests in the idempotency table
	Money     Money

	// Robbed counts, by key, the live attempts whose lease the test itself ended early.
	Robbed map[string]int
}

// Answer is what a client got for one request.
type Answer struct {
	Key        string
	Status     int // 0: no answer, because the connection broke
	Replayed   bool
	RetryAfter string // the header's value
	Body       string
}

// Money is the money in all accounts together, in cents.
type Money struct {
	Opened   int64 // the sum of the opening balances; 0: the money is not counted
	Balances int64 // the sum of the balances now
}

// Payment is an item of the payments table.
type Payment struct {
	ID         string
	Key        string // of the request that asked for it
	Refundable int64  // the part of its amount that was not refunded
}

// Transfer is an item of the transfers table.
type Transfer struct {
	ID     string
	Key    string // of the request that asked for it
	Amount int64
	Status string
}

// States of a transfer.
const (
	reservedTransfer = "reserved"
	doneTransfer     = "done"
)

// Effect is what the clearing house did for one of the keys that it was called with.
type Effect struct {
	Transfer string // the ID of the transfer, as the function sent it
	Amount   int64
}

// Record is an item of the idempotency table.
type Record struct {
	Key     string
	State   lambdaidem.State
	Attempt int // how often the record was acquired or taken over
}
