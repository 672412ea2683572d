package eventsource

import (
	"context"
	"time"
)

// Pauses between attempts. Lambda's own pauses are not documented. These are short, because a
// developer is usually waiting.
const (
	firstPause = 100 * time.Millisecond
	// longestRetry is the longest pause before a batch of a stream, or an invocation that was
	// refused, is tried again.
	longestRetry = 2 * time.Second
	// longestOutage is the longest pause between calls to a queue or stream that returns errors.
	longestOutage = 5 * time.Second
	// longestIdle is the longest pause between reads of a stream that has no new records. Lambda
	// polls a stream four times a second ("Using AWS Lambda with Amazon DynamoDB").
	firstIdle   = 25 * time.Millisecond
	longestIdle = 250 * time.Millisecond
)

// pauses is a sequence of pauses, each twice as long as the one before, up to longest.
type pauses struct {
	next, longest time.Duration
}

func retryPauses() pauses  { return pauses{firstPause, longestRetry} }
func outagePauses() pauses { return pauses{firstPause, longestOutage} }
func idlePauses() pauses   { return pauses{firstIdle, longestIdle} }

// wait waits for the next pause. It returns false if ctx ends first.
func (p *pauses) wait(ctx context.Context) bool {
	pause := p.next
	p.next = min(2*pause, p.longest)
	return sleep(ctx, pause)
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
