package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// onProcessors keeps this process, with all of its threads, on so many of the
// processors that it may use, until the function that it returns is called. It takes
// the last ones: the first has most of the interrupts.
func onProcessors(n int) (leave func() error, err error) {
	var all, some unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, fmt.Errorf("read which processors this process may use: %w", err)
	}
	if all.Count() <= n {
		return nil, fmt.Errorf("of the %d that this process may use, %d leave none over", all.Count(), n)
	}
	for i := len(all)*bitsOfAWord - 1; i >= 0 && some.Count() < n; i-- {
		if all.IsSet(i) {
			some.Set(i)
		}
	}
	if err := eachThread(&some); err != nil {
		return nil, errors.Join(err, eachThread(&all))
	}
	before := runtime.GOMAXPROCS(n)
	return func() error {
		runtime.GOMAXPROCS(before)
		return eachThread(&all)
	}, nil
}

// bitsOfAWord is how many processors one element of a [unix.CPUSet] stands for.
const bitsOfAWord = strconv.IntSize

// eachThread lets every thread of this process run on those processors. A new thread
// may run where the one may that starts it: so this goes on until none is new.
func eachThread(on *unix.CPUSet) error {
	for known := map[int]bool{}; ; {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		old := len(known)
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil {
				return err
			}
			if known[id] {
				continue
			}
			known[id] = true
			if err := unix.SchedSetaffinity(id, on); err != nil && !errors.Is(err, unix.ESRCH) { // it may have ended
				return fmt.Errorf("keep a thread on some processors: %w", err)
			}
		}
		if len(known) == old {
			return nil
		}
	}
}
