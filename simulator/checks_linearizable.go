package simulator

import (
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// observation is an answer that a client saw. It is the input of a porcupine operation.
type observation struct {
	Replayed bool
	Answer   string
}

// sequential is the contract for one record if requests come one after another: the first answer is
// stored, and every later answer is its replay.
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

// checkLinearizable has porcupine check what clients saw of each record. An answer that the record
// stored and no client got took effect at some time after its request, so its operation never
// returns. The model doesn't know that a record begins anew after it has expired or was forgotten.
// So this check leaves out runs with a short TTL or with operators who forget records. It also
// leaves out runs that may fail open.
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
				s.Replayed = false // its own answer, stored by a transaction that it had given up
			}
			end := int64(ans.to.Sub(b.w.born))
			if !s.Replayed && !ans.got.carriesAnswer() {
				stored := h.storedBy(a)
				if stored == "" {
					continue // the client saw no answer, and none was stored
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
