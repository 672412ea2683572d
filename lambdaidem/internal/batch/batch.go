// Package batch runs the items of one batch in the order that they need, some at a
// time, and says of each whether it was done. It knows nothing of where a batch
// comes from, and keeps nothing between two of them.
package batch

import (
	"errors"
	"slices"
)

// Item is one item of a batch, as far as its place among the others goes.
type Item struct {
	// Group holds items together whose order counts: each begins after the one
	// before it, and none begins after one that failed. Empty: it has no order.
	Group string
	// Key holds items together that mean one piece of work: each begins after the
	// one before it. Empty: it is nobody's duplicate.
	Key string
	// Content tells items of one key apart that are no duplicates. A duplicate does
	// not begin: it is done if the one before it was, and failed if that did.
	Content string
}

// Options say how a batch is run.
type Options struct {
	Concurrency int  // how many items run at a time; 0: one
	StopAll     bool // nothing begins any more after the first failure
	// May is asked before each item begins. An error says that there is no time for
	// it, and none for the others.
	May func() error
}

// Why an item did not begin. It counts as failed.
var (
	ErrGroup     = errors.New("an earlier one of its group failed, and order counts")
	ErrDuplicate = errors.New("it is a duplicate of an earlier one that failed")
	ErrStopped   = errors.New("an earlier one failed, and nothing of the batch was to begin after that")
	ErrDied      = errors.New("its handler called runtime.Goexit")
)

// Run calls do for each item at most once, with its place in the batch, and returns
// an error for each; nil: it was done. It returns when every call has. The next to
// begin is always the earliest that may. No call is on the caller's goroutine.
func Run(items []Item, o Options, do func(i int) error) []error {
	r := run{items: items, opts: o, do: do, errs: make([]error, len(items))}
	r.chain()
	if o.Concurrency <= 1 {
		r.oneByOne()
	} else {
		r.together()
	}
	return r.errs
}

// run is one batch on its way.
type run struct {
	items   []Item
	opts    Options
	do      func(i int) error
	errs    []error
	ready   []int   // what may begin, the earliest first
	waits   []int   // how many items each waits for; nil: none waits
	after   [][]int // which items wait for each
	failed  bool
	lateErr error // from May: nothing begins any more

	groups map[string]bool     // that had a failure
	ends   map[[2]string]error // of keys with contents
}

// chain has each item wait for the last one before it of its group, and of its key.
func (r *run) chain() {
	r.waits, r.after = make([]int, len(r.items)), make([][]int, len(r.items))
	r.groups, r.ends = map[string]bool{}, map[[2]string]error{}
	lastOfGroup, lastOfKey := map[string]int{}, map[string]int{}
	wait := func(i int, last map[string]int, name string) {
		if name == "" {
			return
		}
		if before, ok := last[name]; ok {
			r.waits[i]++
			r.after[before] = append(r.after[before], i)
		}
		last[name] = i
	}
	for i, item := range r.items {
		wait(i, lastOfGroup, item.Group)
		wait(i, lastOfKey, item.Key)
		if r.waits[i] == 0 {
			r.ready = append(r.ready, i)
		}
	}
}

// next takes the earliest that may begin.
func (r *run) next() int {
	i := r.ready[0]
	r.ready = r.ready[1:]
	return i
}

// decided reports whether an item that may begin doesn't, and how it ends then.
func (r *run) decided(i int) (bool, error) {
	item := r.items[i]
	of := [2]string{item.Key, item.Content}
	switch {
	case r.opts.StopAll && r.failed:
		return true, ErrStopped
	case item.Group != "" && r.groups[item.Group]:
		return true, ErrGroup
	case item.Key != "" && r.ends[of] != nil:
		return true, ErrDuplicate
	case item.Key != "" && r.ended(of):
		return true, nil
	}
	if r.lateErr == nil && r.opts.May != nil {
		r.lateErr = r.opts.May()
	}
	return r.lateErr != nil, r.lateErr
}

// ended reports whether one of that key and content has come to an end.
func (r *run) ended(of [2]string) bool {
	_, ended := r.ends[of]
	return ended
}

// settle takes note of how an item ended, and lets those begin that waited for it.
func (r *run) settle(i int) {
	item := r.items[i]
	if r.errs[i] != nil {
		r.failed = true
		r.groups[item.Group] = true
	}
	if of := [2]string{item.Key, item.Content}; !r.ended(of) {
		r.ends[of] = r.errs[i] // the first one's; its duplicates may fail for other reasons
	}
	for _, next := range r.after[i] {
		if r.waits[next]--; r.waits[next] == 0 {
			at, _ := slices.BinarySearch(r.ready, next)
			r.ready = slices.Insert(r.ready, at, next)
		}
	}
}

// oneByOne runs items on one goroutine, since to hand each over to one of its own
// takes longer than all else here; on another one after an item that ended it.
func (r *run) oneByOne() {
	one := func(i int) {
		err := ErrDied
		defer func() {
			r.errs[i] = err
			r.settle(i)
		}()
		err = r.do(i)
	}
	for len(r.ready) > 0 {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for len(r.ready) > 0 {
				i := r.next()
				if decided, err := r.decided(i); decided {
					r.errs[i] = err
					r.settle(i)
					continue
				}
				one(i)
			}
		}()
		<-ended
	}
}

// together runs items on goroutines of their own. Only this one decides.
func (r *run) together() {
	type end struct {
		i   int
		err error
	}
	ended := make(chan end)
	running := 0
	for {
		for running < r.opts.Concurrency && len(r.ready) > 0 {
			i := r.next()
			if decided, err := r.decided(i); decided {
				r.errs[i] = err
				r.settle(i)
				continue
			}
			running++
			go func() {
				err := ErrDied
				defer func() { ended <- end{i, err} }()
				err = r.do(i)
			}()
		}
		if running == 0 {
			return
		}
		e := <-ended
		running--
		r.errs[e.i] = e.err
		r.settle(e.i)
	}
}
