package simulator

import (
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// sight is one thing that a client saw, for porcupine.
type observation struct {
	Replayed bool
	Answer   string
}

// sequential is the contract for one key, one request at a time: the first
// answer is stored, and every later one is its replay.
var sequential = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		stored, s := state.(string), input.(observation)
		if s.Replayed {
			return stored == s.Answer, stored
		}
		return stored == "", s.Answer
	},
	Equal: func(a, b any) bool { return a.(string) == b.(string) },
}

// checkLinearizable hands porcupine what clients saw of each key. An answer
// that its client never got, but the record stored, took effect at some time
// after its request: its end is open. Records that expired or were forgotten begin
// anew, which the model doesn't know, so runs with a short TTL and with operators
// who forget are left to the other checks.
func (j *judge) checkLinearizable() {
	b := j.b
	if b.w.plan.ttl < time.Hour || b.w.plan.failOpen || b.w.plan.operators.forget {
		return
	}
	for _, h := range b.sorted() {
		ops := h.settledByOperators(b.w.born)
		for _, ans := range b.answers {
			a := ans.actor
			if a.order.Key != h.order.Key || a.order.Owner != h.order.Owner {
				continue
			}
			s := observation{Replayed: ans.got.Replayed, Answer: ans.got.text()}
			if s.Replayed && a.run != nil && h.storedBy(a) == s.Answer {
				s.Replayed = false // its own, of a transaction that it had given up (E2)
			}
			end := int64(ans.to.Sub(b.w.born))
			if !s.Replayed && !ans.got.carriesAnswer() {
				stored := h.storedBy(a)
				if stored == "" {
					continue // it saw nothing, and left nothing
				}
				s, end = observation{Answer: stored}, math.MaxInt64
			}
			ops = append(ops, porcupine.Operation{ClientId: len(ops), Input: s, Call: int64(ans.from.Sub(b.w.born)), Return: end})
		}
		if !porcupine.CheckOperations(sequential, ops) {
			j.brokenRecord(h, CheckLinearizable, "the answers to %+v fit no order: %+v", h.order, ops)
		}
	}
}
