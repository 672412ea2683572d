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
		return nil, fmt.Errorf("this process may use %d processors, which the database shares", all.Count())
	}
	for i := len(all)*bitsOfAWord - 1; i >= 0 && some.Count() < n; i-- {
		if all.IsSet(i) {
			some.Set(i)
		}
	}
	if err := eachThread(&some); err != nil {
		return nil, errors.Join(err, eachThread(&all))
	}
	runtime.GOMAXPROCS(n)
	return func() error {
		err := eachThread(&all)
		runtime.SetDefaultGOMAXPROCS()
		return err
	}, nil
}

// bitsOfAWord is how many processors one element of a [unix.CPUSet] stands for.
const bitsOfAWord = strconv.IntSize

// eachThread lets every thread of this process run on those processors. A new thread
// may run where the one may that starts it: so this goes on until there is none that
// may run elsewhere.
func eachThread(on *unix.CPUSet) error {
	for {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		changed := false
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil {
				return err
			}
			var may unix.CPUSet
			err = unix.SchedGetaffinity(id, &may)
			if err == nil && may != *on {
				changed = true
				err = unix.SchedSetaffinity(id, on)
			}
			if err != nil && !errors.Is(err, unix.ESRCH) { // it may have ended
				return fmt.Errorf("keep a thread on some processors: %w", err)
			}
		}
		if !changed {
			return nil
		}
	}
}
