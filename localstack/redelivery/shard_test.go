package redelivery

import (
	"slices"
	"sync"
	"testing"
)

// shard is a shard of a stream, read as by an event source mapping. After a lost answer, the
// batch size is halved and the records are delivered again. After an answer, reading continues at
// the lowest failure.
type shard struct {
	w        *world
	dice     *dice
	records  []Message // in the order of sending
	reported map[string]int
	givenUp  map[string]bool
}

// consumeStream reads two shards concurrently. Each group is in one of them.
func consumeStream(t *testing.T, w *world, d *dice) {
	t.Helper()
	shards := make([]*shard, 2)
	for i := range shards {
		shards[i] = &shard{w: w, dice: d, reported: map[string]int{}, givenUp: map[string]bool{}}
	}
	for _, m := range w.sent {
		s := shards[int(m.Group[0])%len(shards)]
		s.records = append(s.records, m)
	}
	var both sync.WaitGroup
	for _, s := range shards {
		both.Go(func() { s.consume(t) })
	}
	both.Wait()
}

func (s *shard) consume(t *testing.T) {
	const most = 6
	size := most
	for at := 0; at < len(s.records) && t.Context().Err() == nil; {
		batch := s.batch(at, size)
		if len(batch) == 0 {
			return // all remaining records were given up
		}
		var other sync.WaitGroup
		if s.dice.chance(20) { // delivery is at least once, so two processes may receive the batch at the same time
			other.Go(func() { s.w.deliver(t, batch...) })
		}
		d := s.w.deliver(t, batch...)
		other.Wait()
		again := s.w.source.again(d)
		switch {
		case len(again) == 0:
			at, size = s.place(batch[len(batch)-1])+1, 1+s.dice.below(most)
		case d.Lost:
			size = max(1, size/2)
		default:
			at = s.place(again[0])
			s.failed(again[0])
		}
		if s.dice.chance(10) {
			at = max(0, at-s.dice.below(most)) // an older checkpoint
		}
	}
}

// batch returns up to size records from position at on, without those that were given up.
func (s *shard) batch(at, size int) []string {
	var names []string
	for _, m := range s.records[at:] {
		if len(names) < size && !s.givenUp[m.Name] {
			names = append(names, m.Name)
		}
	}
	return names
}

func (s *shard) place(name string) int {
	return slices.IndexFunc(s.records, func(m Message) bool { return m.Name == name })
}

// failed counts a failure of a record, and gives the record up after several failures if it can
// never succeed.
func (s *shard) failed(name string) {
	if s.reported[name]++; s.reported[name] >= receives && s.records[s.place(name)].Poison() {
		s.givenUp[name] = true
	}
}
