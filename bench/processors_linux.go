package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// onProcessors keeps this process, with all of its threads, on n of the processors that it may use,
// until leave is called. It returns an error if that would leave no processor for other processes.
// It uses the last processors, because the first one handles most interrupts.
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

// bitsOfAWord is the number of processors that one element of a [unix.CPUSet] represents.
const bitsOfAWord = strconv.IntSize

// eachThread lets every thread of this process run on the given processors only. A new thread
// inherits the processors of the thread that starts it, so eachThread repeats this until it finds
// no new thread.
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
			if err := unix.SchedSetaffinity(id, on); err != nil && !errors.Is(err, unix.ESRCH) { // the thread may have ended
				return fmt.Errorf("keep a thread on some processors: %w", err)
			}
		}
		if len(known) == old {
			return nil
		}
	}
}
