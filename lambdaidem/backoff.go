package lambdaidem

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"time"
)

const (
	firstPause   = 20 * time.Millisecond // pause before the first retry of a store call; later pauses are longer
	longestPause = time.Second           // maximum pause between two tries of a store call
	// conflictPatience is the maximum time for retrying a claim while a transaction of
	// another attempt is writing the item.
	conflictPatience = 200 * time.Millisecond
)

// backOff pauses after a failed try of a store call, and reports whether there is time for another
// try. tries is the number of tries so far, 1 or more. The maximum pause doubles with each try,
// from firstPause to longestPause.
func (b *budget) backOff(ctx context.Context, tries int) bool {
	doublings := min(tries-1, 6) // six reach longestPause, and more could overflow
	return b.pause(ctx, min(firstPause<<doublings, longestPause))
}

// pause sleeps for a random time between d/2 and d, or until ctx ends. It reports whether
// ctx is still active.
func (b *budget) pause(ctx context.Context, d time.Duration) bool {
	var random [4]byte
	if _, err := io.ReadFull(b.opts.Random, random[:]); err != nil {
		panic(fmt.Sprintf("lambdaidem: Options.Random: %v", err))
	}
	half := d / 2
	timer := time.NewTimer(half + time.Duration(binary.BigEndian.Uint32(random[:]))%(half+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
