// Package elapsedtest helps tests simulate a frozen process or a changed wall clock. Its only
// function moves the two clock readings of a time.Time.
package elapsedtest

import (
	"fmt"
	"time"
	"unsafe"
)

// Move returns t, which must be a result of time.Now, with its wall clock reading moved by
// wall and its monotonic clock reading moved by monotonic. Package time has no function for
// that, so Move changes the fields of the time.Time. It panics if the layout of time.Time is not
// the one that it expects.
func Move(t time.Time, wall, monotonic time.Duration) time.Time {
	moved := t.Add(wall)
	(*struct { // the fields of a time.Time that has a monotonic reading
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&moved)).ext += int64(monotonic - wall) //nolint:gosec // moved is a variable of this function
	if byWall, byMonotonic := moved.Round(0).Sub(t.Round(0)), moved.Sub(t); byWall != wall || byMonotonic != monotonic {
		panic(fmt.Sprintf("elapsedtest: moved by %v and %v instead of %v and %v; the fields of time.Time have changed", byWall, byMonotonic, wall, monotonic))
	}
	return moved
}
