package simulator

import "time"

// scheduledCall is a function to be called at a time.
type scheduledCall struct {
	at  time.Time
	seq int
	do  func()
}

// agenda has the scheduled calls, the earliest first. It implements heap.Interface.
type agenda struct {
	heap []scheduledCall
	seq  int
}

func (g *agenda) Len() int           { return len(g.heap) }
func (g *agenda) Less(i, j int) bool { return g.heap[i].before(g.heap[j]) }
func (g *agenda) Swap(i, j int)      { g.heap[i], g.heap[j] = g.heap[j], g.heap[i] }
func (g *agenda) Push(x any)         { g.heap = append(g.heap, x.(scheduledCall)) }
func (g *agenda) Pop() any {
	last := g.heap[len(g.heap)-1]
	g.heap = g.heap[:len(g.heap)-1]
	return last
}

func (e scheduledCall) before(o scheduledCall) bool {
	if c := e.at.Compare(o.at); c != 0 {
		return c < 0
	}
	return e.seq < o.seq
}
