package window

import (
	"fmt"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/internal/sequence"
	"github.com/lambdaidem/toolkit/localstack/emulator"
)

// process is a process that has handled an HTTP request. Others, such as those that read
// queues, have no column.
type process struct {
	party sequence.Party
	shown bool // the diagram has its beginning
}

// watchProcesses is told what happens to the emulator's processes and invocations.
func (w *Window) watchProcesses(e emulator.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.exchange(e.TraceID)
	switch e.Kind {
	case emulator.InvocationTaken:
		if x != nil {
			w.taken(x, e)
		}
	case emulator.InvocationTimedOut:
		if x != nil {
			x.dead = true
			w.history.add(sequence.Event{From: gateway.ID, Request: x.label, Kind: sequence.Note, Text: "the function's timeout is over, and there is no answer: the process is killed"})
		}
	case emulator.InvocationAnswered:
		if x != nil {
			x.answered = true
		}
	case emulator.ProcessEnded:
		p := w.processes[e.PID]
		if p == nil {
			return
		}
		delete(w.processes, e.PID)
		label := ""
		if x := w.unanswered(p.party.ID); x != nil {
			label, x.dead = x.label, true
		}
		if p.shown {
			w.history.add(sequence.Event{From: p.party.ID, Request: label, Kind: sequence.End, Text: ending(e.Reason), Detail: e.Reason})
		}
		w.history.forget(p.party.ID)
	}
}

// taken shows that a process has got a request, and that the process has started if it is new.
func (w *Window) taken(x *exchange, e emulator.Event) {
	p := w.processes[e.PID]
	text := "is still running from earlier"
	if p == nil {
		w.named[e.Function]++
		number := w.named[e.Function]
		p = &process{party: sequence.Party{
			ID:   fmt.Sprintf("%s-%d", e.Function, number),
			Name: fmt.Sprintf("%s, process %d", shortName(e.Function, "Function"), number),
			Kind: sequence.Process,
		}}
		w.processes[e.PID] = p
		w.history.party(p.party)
		text = fmt.Sprintf("has started, which took %d ms", time.Since(e.Started).Milliseconds())
	}
	if !p.shown {
		p.shown = true
		w.history.add(sequence.Event{From: p.party.ID, Request: x.label, Kind: sequence.Begin, Text: text, Detail: fmt.Sprintf("process id %d", e.PID)})
	}
	x.process = p.party.ID
	w.history.add(x.call(p.party.ID))
}

// unanswered returns the request that a process is handling, or nil.
func (w *Window) unanswered(process string) *exchange {
	for _, x := range w.exchanges {
		if x.process == process && !x.answered && !x.over {
			return x
		}
	}
	return nil
}

// ending says in words why a process ended.
func ending(reason string) string {
	if strings.HasSuffix(reason, "signal: killed") {
		return "is killed, and can do nothing more"
	}
	return "ends"
}

// clear begins a new diagram, unless a story is being played: its end would have no beginning.
func (w *Window) clear() error {
	if w.playing() {
		return errStory
	}
	w.startAfresh()
	w.update(func(c *controls) { c.look, c.sum, c.summed = "", "", "" })
	return nil
}

// startAfresh begins a new diagram.
func (w *Window) startAfresh() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.processes {
		p.shown = false
	}
	w.history.clear()
}
