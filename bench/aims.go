package main

import "time"

// aims has the maximum for each ratio of a comparison, ours divided by the floor. 0 means that
// there is no aim.
type aims struct{ median, p99, cpu, allocations float64 }

// The aims that several scenarios have in common, and those of the other measurements. "Ours" is the
// toolkit, and the "floor" is the bare SDK.
const (
	aimAtOnce      = 1.00                  // ours / floor, at the median, with many requests at once
	aimP99         = 1.00                  // ours / floor; missed only if the whole interval is above it
	aimAllocated   = 0.38                  // ours / floor
	aimTransaction = 1.03                  // ours / floor, at the median, for the one request of an optimistic handler
	aimCall        = 15 * time.Microsecond // one call of a guard with memstore, for a body of bodySize
	aimAllocations = 60                    // allocations of that call
	aimCached      = time.Microsecond      // a replay from the cache, without the work that every handler does
	aimThroughput  = 0.95                  // ours / floor, messages per second, for new messages
	aimEngine      = 5 * time.Microsecond  // for each message, in addition to a loop that calls Do
)
