package main

import (
	"context"
	"fmt"
)

// The capacity of one partition in a second (AWS, "Best practices for designing and using partition
// keys effectively in DynamoDB").
const (
	partitionWrites = 1000
	partitionReads  = 3000
)

// largest has the maximum that a replay consumes.
type largest struct {
	refused  float64 // write units of the refused write, for the most expensive answer, with the defaults
	answer   int     // bytes of noise in that answer
	oneRead  float64 // read units of the largest item that a replay reads
	withMost float64 // like refused, with the longest possible scope
	inline   float64 // like refused, if the answer were stored inline in the largest possible record
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

// largestReplay looks for the most expensive refused writes. It tries the sizes around the one from
// which a layout stores answers in parts.
func (r *rig) largestReplay(ctx context.Context) (largest, error) {
	var l largest
	longest := *r
	longest.longScope = true
	for _, one := range []struct {
		rig            *rig
		layout         layout
		from, to, step int // bytes of noise; compressing its base64 adds one percent to this size
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
