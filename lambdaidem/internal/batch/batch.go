// Package batch calls a function for each item of a batch, several at a time, and returns the
// error of each item. It keeps the order that some items require, and skips duplicates.
package batch

import (
	"errors"
	"slices"
)

// Item describes an item of a batch. Its fields determine when the item runs, relative to the
// other items.
type Item struct {
	// Group is the same for items that must run in order, such as the messages of a FIFO group. An
	// item begins only after the previous item of its group has ended. After an item has failed, no
	// later item of its group begins. "" means that the order of this item does not matter.
	Group string
	// Key is the same for items that must not run at the same time, because they use the same
	// record. An item begins only after the previous item with the same key has ended. "" means
	// that the item has no key.
	Key string
	// Content is a digest of the item's payload. An item with the same Key and Content as
	// an earlier item is a duplicate, and does not run. The duplicate succeeds if the earlier
	// item succeeded. Otherwise the duplicate fails with ErrDuplicate. An item without a Key
	// is never a duplicate.
	Content string
}

// Options configure Run.
type Options struct {
	Concurrency int  // maximum number of items that run at the same time; 0 means 1
	StopAll     bool // no item begins after the first failure of any item
	// May decides whether further items may begin. It is called before each item begins. If it
	// returns an error, no further item begins, and each item that would have begun fails with this
	// error. If May is nil, all items may begin.
	May func() error
}

// Errors of items that did not end normally.
var (
	ErrGroup     = errors.New("an earlier one of its group failed, and order counts")
	ErrDuplicate = errors.New("it is a duplicate of an earlier one that failed")
	ErrStopped   = errors.New("an earlier one failed, and nothing of the batch was to begin after that")
	ErrDied      = errors.New("its handler called runtime.Goexit")
)

// Run calls do at most once for each item, with the item's index. It returns one error for each
// item, which is nil if the item succeeded. Of the items that may begin (see [Item]), Run begins
// the one with the lowest index first. Run returns after all calls of do have returned. It calls do
// on goroutines other than the caller's: if do calls runtime.Goexit, only its item fails, with
// ErrDied.
func Run(items []Item, o Options, do func(i int) error) []error {
	r := run{items: items, opts: o, do: do, errs: make([]error, len(items))}
	r.link()
	if o.Concurrency <= 1 {
		r.sequentially()
	} else {
		r.concurrently()
	}
	return r.errs
}

// run is the state of one call of Run. Items are identified by their index.
type run struct {
	items      []Item
	opts       Options
	do         func(i int) error
	errs       []error // the errors of the items that have ended
	readyItems []int   // the items that may begin, in ascending order
	waits      []int   // for each item, the number of items that it still waits for
	waiters    [][]int // for each item, the items that wait for it
	failed     bool    // an item has failed
	lateErr    error   // the error of Options.May; no item begins if it is not nil

	groups map[string]bool     // the groups in which an item has failed
	ends   map[[2]string]error // by Key and Content: the error of the first item with that pair; nil if it succeeded
}

// link makes each item wait for the previous item of its group, and for the previous item with the
// same key. Items that wait for nothing become ready.
func (r *run) link() {
	r.waits, r.waiters = make([]int, len(r.items)), make([][]int, len(r.items))
	r.groups, r.ends = map[string]bool{}, map[[2]string]error{}
	lastOfGroup, lastOfKey := map[string]int{}, map[string]int{}
	wait := func(i int, last map[string]int, name string) {
		if name == "" {
			return
		}
		if before, ok := last[name]; ok {
			r.waits[i]++
			r.waiters[before] = append(r.waiters[before], i)
		}
		last[name] = i
	}
	for i, item := range r.items {
		wait(i, lastOfGroup, item.Group)
		wait(i, lastOfKey, item.Key)
		if r.waits[i] == 0 {
			r.readyItems = append(r.readyItems, i)
		}
	}
}

// next removes the first item from r.readyItems and returns it.
func (r *run) next() int {
	i := r.readyItems[0]
	r.readyItems = r.readyItems[1:]
	return i
}

// skips reports whether item i must not run. If so, it also returns the item's error, which is nil
// if the item is a duplicate of an item that succeeded.
func (r *run) skips(i int) (bool, error) {
	item := r.items[i]
	pair := [2]string{item.Key, item.Content}
	switch {
	case r.opts.StopAll && r.failed:
		return true, ErrStopped
	case item.Group != "" && r.groups[item.Group]:
		return true, ErrGroup
	case item.Key != "" && r.ends[pair] != nil:
		return true, ErrDuplicate
	case item.Key != "" && r.ended(pair):
		return true, nil
	}
	if r.lateErr == nil && r.opts.May != nil {
		r.lateErr = r.opts.May()
	}
	return r.lateErr != nil, r.lateErr
}

// ended reports whether an item with the given Key and Content has ended.
func (r *run) ended(keyAndContent [2]string) bool {
	_, ended := r.ends[keyAndContent]
	return ended
}

// recordEnd records the end of item i, whose error is r.errs[i]. Items that waited only for item i
// become ready.
func (r *run) recordEnd(i int) {
	item := r.items[i]
	if r.errs[i] != nil {
		r.failed = true
		r.groups[item.Group] = true
	}
	if pair := [2]string{item.Key, item.Content}; !r.ended(pair) {
		r.ends[pair] = r.errs[i] // only for the first item: a later duplicate may end with another error, such as ErrGroup
	}
	for _, next := range r.waiters[i] {
		if r.waits[next]--; r.waits[next] == 0 {
			at, _ := slices.BinarySearch(r.readyItems, next)
			r.readyItems = slices.Insert(r.readyItems, at, next)
		}
	}
}

// sequentially runs the items one after the other, on a single goroutine: starting a goroutine for
// each item would take longer than everything else here. If an item calls runtime.Goexit, which
// ends the goroutine, the remaining items run on a new goroutine.
func (r *run) sequentially() {
	one := func(i int) {
		err := ErrDied
		defer func() {
			r.errs[i] = err
			r.recordEnd(i)
		}()
		err = r.do(i)
	}
	for len(r.readyItems) > 0 {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for len(r.readyItems) > 0 {
				i := r.next()
				if skipped, err := r.skips(i); skipped {
					r.errs[i] = err
					r.recordEnd(i)
					continue
				}
				one(i)
			}
		}()
		<-ended
	}
}

// concurrently runs up to Options.Concurrency items at the same time, each on its own
// goroutine. Only the calling goroutine changes r.
func (r *run) concurrently() {
	type end struct {
		i   int
		err error
	}
	ended := make(chan end)
	running := 0
	for {
		for running < r.opts.Concurrency && len(r.readyItems) > 0 {
			i := r.next()
			if skipped, err := r.skips(i); skipped {
				r.errs[i] = err
				r.recordEnd(i)
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
		r.recordEnd(e.i)
	}
}
