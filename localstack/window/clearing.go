package window

import (
	"slices"

	"github.com/lambdaidem/toolkit/internal/sequence"
)

// house is the outside service that a transfer needs, in this project's own stack.
var house = sequence.Party{ID: "house", Name: "clearing house", Kind: sequence.Service}

// clears shows a call of the clearing house, and what it does. The call belongs to the latest request
// whose record the transfer was reserved for.
func (w *Window) clears(transfer, does string, effect bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.tallies, func(t *tally) bool { return slices.Contains(t.movements, transfer) })
	if i < 0 {
		return
	}
	for _, x := range slices.Backward(w.exchanges) {
		if x.asked != w.tallies[i].record || x.process == "" {
			continue
		}
		w.history.add(sequence.Event{From: x.process, To: house.ID, Request: x.label, Kind: sequence.Call, Text: "asks an outside service to clear the transfer"})
		kind := sequence.Note
		if effect {
			kind = sequence.Effect
		}
		w.history.add(sequence.Event{From: house.ID, Request: x.label, Kind: kind, Text: does})
		return
	}
}
