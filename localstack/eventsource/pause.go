package eventsource

import (
	"context"
	"time"
)

// Pauses between attempts. Lambda's own are not documented; these are short, because
// somebody is watching.
const (
	firstPause = 100 * time.Millisecond
	// longestRetry is between attempts at a batch of a stream, or at an invocation
	// that was refused.
	longestRetry = 2 * time.Second
	// longestOutage is between calls to a queue or stream that does not answer.
	longestOutage = 5 * time.Second
	// longestIdle is between looks at a stream that has nothing new. Lambda looks
	// four times a second ("Using AWS Lambda with Amazon DynamoDB").
	firstIdle   = 25 * time.Millisecond
	longestIdle = 250 * time.Millisecond
)

// pauses double, from the first to the longest.
type pauses struct {
	next, longest time.Duration
}

func retryPauses() pauses  { return pauses{firstPause, longestRetry} }
func outagePauses() pauses { return pauses{firstPause, longestOutage} }
func idlePauses() pauses   { return pauses{firstIdle, longestIdle} }

// wait is over when the pause is, or with false when ctx ends.
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
