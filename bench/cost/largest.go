package main

import (
	"context"
	"fmt"
)

// What one partition takes in a second (AWS, "Best practices for designing and
// using partition keys effectively in DynamoDB").
const (
	partitionWrites = 1000
	partitionReads  = 3000
)

// largest is the most that a replay consumes with the defaults.
type largest struct {
	refused  float64 // write units, of any answer
	answer   int     // bytes of noise, of which that is
	oneRead  float64 // read units of the largest item that it reads
	withMost float64 // refused, with the longest scope that there is
	inline   float64 // refused, if the largest record that there can be kept it all
}

func (l largest) String() string {
	return fmt.Sprintf("With the defaults, no replay costs the refused write of a large item: at most %s* write units, for an answer that takes about %d KB in the table "+
		"(%s* if namespace, route and caller are each as long as possible). A partition supports %d write units a second, which is enough for %d replays a second of one key.\n\n"+
		"A replay of a larger answer costs 1* write unit, and reads parts of at most %s read units each. A partition supports %d read units a second, which is enough for %d replays a second.\n\n"+
		"If the answer were stored inline, the replay of a record of 384 KB would cost %s* write units. A partition would support %d a second.\n",
		number(l.refused), (l.answer+512)>>10, number(l.withMost), partitionWrites, int(partitionWrites/l.refused),
		number(l.oneRead), partitionReads, int(partitionReads/l.oneRead),
		number(l.inline), int(partitionWrites/l.inline))
}

// largestReplay looks for the dearest refused writes, where a layout goes over
// from records that have the answer to parts.
func (r *rig) largestReplay(ctx context.Context) (largest, error) {
	var l largest
	longest := *r
	longest.longScope = true
	for _, one := range []struct {
		rig            *rig
		layout         layout
		from, to, step int // bytes of noise; its base64 is compressed to one in a hundred more
		refused        *float64
		size           *int
	}{
		{r, layouts[byDefault], 19 << 10, 21 << 10, 16, &l.refused, &l.answer},
		{&longest, layouts[byDefault], 19 << 10, 21 << 10, 16, &l.withMost, new(int)},
		{r, layouts[inlineGzip], 372 << 10, 386 << 10, 1 << 10, &l.inline, new(int)},
	} {
		for size := one.from; size < one.to; size += one.step {
			f, err := one.rig.measure(ctx, one.layout, silent, contents[1].answer(size))
			if err != nil {
				return l, err
			}
			if f.replay.refused >= *one.refused {
				*one.refused, *one.size = f.replay.refused, size
			}
		}
		if f := *one.refused; f < float64(one.from>>10) {
			return l, fmt.Errorf("%s: the dearest refused write that was found is of %v units, between %d and %d bytes", one.layout.name, f, one.from, one.to)
		}
	}
	whole, err := r.measure(ctx, layouts[partsGzip], silent, contents[1].answer(255<<10))
	if err != nil {
		return l, err
	}
	l.oneRead = whole.replay.read
	return l, nil
}
