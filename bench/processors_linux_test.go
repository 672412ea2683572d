package main

import (
	"os"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// keepTo keeps every thread on one processor until leave is called. After that, every thread may
// use all processors that it could use before.
func TestTheClientIsOnOneProcessor(t *testing.T) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	before := runtime.GOMAXPROCS(3) // an arbitrary value, which leave must restore
	defer runtime.GOMAXPROCS(before)
	var r results
	leave, err := r.keepTo(1), r.shared
	if all.Count() == 1 {
		if err == nil {
			t.Error("there is but one processor, and it was taken from the database")
		}
		t.Skip("there is but one processor here")
	}
	if err != nil {
		t.Fatal(err)
	}
	if n := runtime.GOMAXPROCS(0); n != 1 {
		t.Errorf("GOMAXPROCS is %d", n)
	}
	one := eachMay(t, func(may unix.CPUSet) bool { return may.Count() == 1 })
	if got, want := last(one), last(all); got != want {
		t.Errorf("it is on processor %d; want %d, the last", got, want)
	}
	for range 2 { // check threads that start later too
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // never unlocked, so that each goroutine needs its own thread
			eachMay(t, func(may unix.CPUSet) bool { return may == one })
		}()
		<-done
	}
	if err := leave(); err != nil {
		t.Fatal(err)
	}
	eachMay(t, func(may unix.CPUSet) bool { return may == all })
	if n := runtime.GOMAXPROCS(0); n != 3 {
		t.Errorf("GOMAXPROCS is %d; it was 3", n)
	}
	if _, err := onProcessors(all.Count()); err == nil {
		t.Error("it left the database none of its own, and did not say so")
	}
}

func last(of unix.CPUSet) int {
	i := len(of)*bitsOfAWord - 1
	for i >= 0 && !of.IsSet(i) {
		i--
	}
	return i
}

// eachMay fails the test unless holds returns true for the processors of each thread of this
// process. It returns the processors of one thread.
func eachMay(t *testing.T, holds func(unix.CPUSet) bool) (may unix.CPUSet) {
	t.Helper()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Error(err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			t.Error(err)
		}
		if err := unix.SchedGetaffinity(id, &may); err == nil && !holds(may) {
			t.Errorf("a thread may run on %d processors", may.Count())
		}
	}
	return may
}
