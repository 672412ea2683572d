package simulator

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
	"github.com/lambdaidem/toolkit/internal/sequence"
)

// diagram returns a diagram of the timeline. r is the report of the same run.
func (w *world) diagram(r *Report) sequence.Diagram {
	d := &drawing{w: w, known: map[string]bool{}}
	d.Title = fmt.Sprintf("Simulated run of seed %d", w.seed)
	d.Summary = r.summary()
	for i := range uint64(w.plan.clients) {
		d.client(i + 1)
	}
	for i := range w.plan.operators.count {
		d.operator(i + 1)
	}
	d.add(entry{}, sequence.Event{From: d.world(), Kind: sequence.Note, Text: "the run begins", Detail: strings.ReplaceAll(fmt.Sprintf("%+v", w.plan), " ", "\n")})
	for _, e := range w.journal.sortedEntries() {
		d.draw(e)
	}
	if i := slices.IndexFunc(d.Events, func(e sequence.Event) bool { return e.Wrong }); i >= 0 {
		d.Summary += fmt.Sprintf(" The first is marked at %.3f s.", d.Events[i].At.Seconds())
	}
	return d.Diagram
}

// summary returns a paragraph about the result of a run.
func (r *Report) summary() string {
	text := fmt.Sprintf("%d requests of clients, %d runs of the handler.", r.Requests, r.Runs)
	var faults []string
	for _, f := range slices.Sorted(maps.Keys(r.Faults)) {
		faults = append(faults, fmt.Sprintf("%s (%d)", f, r.Faults[f]))
	}
	if len(faults) > 0 {
		text += " What went wrong on the way: " + strings.Join(faults, ", ") + "."
	}
	if len(r.Wrong) == 0 {
		return text + " The run kept every rule."
	}
	var rules []string
	for _, v := range r.Wrong {
		if rule := Checks[v.Check]; !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	return text + " The run broke these rules: " + strings.Join(rules, "; ") + "."
}

// drawing is a diagram under construction.
type drawing struct {
	sequence.Diagram
	w     *world
	known map[string]bool // the IDs of the parties
}

// add adds an event with the time of the entry. If the entry's actor is an invocation, the event
// belongs to its request.
func (d *drawing) add(e entry, event sequence.Event) {
	event.At = e.at
	if a := e.actor; a != nil && a.operation == nil {
		event.Request = fmt.Sprint(a.id)
	}
	d.Events = append(d.Events, event)
}

// draw draws one entry.
func (d *drawing) draw(e entry) {
	switch e.kind {
	case kindNote:
		d.add(e, sequence.Event{From: d.process(e.actor), Kind: sequence.Note, Text: e.text})
	case kindPolicy: // shown at the start of the process
	case kindOperator:
		text := e.text
		if e.done {
			text += "it is done"
		}
		d.add(e, sequence.Event{From: d.process(e.actor), Kind: sequence.Note, Text: text})
	case kindAsk:
		d.ask(e)
	case kindGiveUp:
		d.add(e, sequence.Event{From: d.clientOf(e.actor), Kind: sequence.Note, Text: "stops waiting for an answer"})
	case kindAnswer:
		event := sequence.Event{From: d.process(e.actor), To: d.clientOf(e.actor), Kind: sequence.Reply, Text: e.line(), Lost: e.lost}
		event.Ends = e.actor.process == nil
		d.add(e, event)
	case kindFault:
		d.fault(e)
	case kindUnreached:
		d.add(e, sequence.Event{From: d.process(e.actor), To: d.database(e.actor), Kind: sequence.Call, Text: e.request.purpose(), Detail: e.request.detail(), Lost: true})
	case kindServe:
		d.add(e, sequence.Event{From: d.process(e.actor), To: d.database(e.actor), Kind: sequence.Call, Text: e.request.text(e.at), Detail: e.request.detail(), Record: d.record(e.write)})
	case kindLoss:
		d.add(e, sequence.Event{From: d.database(e.actor), To: d.process(e.actor), Kind: sequence.Reply, Text: e.reply(), Lost: true})
	case kindReply:
		d.add(e, sequence.Event{From: d.database(e.actor), To: d.process(e.actor), Kind: sequence.Reply, Text: e.reply(), Detail: string(e.body)})
	case kindCutOff:
		d.add(e, sequence.Event{From: d.process(e.actor), Kind: sequence.Note, Text: "gets no reply to: " + e.request.purpose()})
	case kindDeath:
		d.add(e, sequence.Event{From: d.process(e.actor), Kind: sequence.End, Text: e.line()})
	case kindEffect:
		d.add(e, sequence.Event{From: d.process(e.actor), Kind: sequence.Effect, Text: e.line()})
	case kindExpiry:
		d.add(e, sequence.Event{From: d.database(nil), Kind: sequence.Note, Text: e.line(), Record: d.record(e.write)})
	case kindBroken:
		d.add(e, sequence.Event{From: d.process(e.actor), Kind: sequence.Note, Text: fmt.Sprintf("broken rule, %s: %s", e.check, e.text), Detail: Checks[e.check], Wrong: true})
	}
}

// ask draws the request of a client, and the start of a process if the request starts one.
func (d *drawing) ask(e entry) {
	a := e.actor
	o := a.order
	text := fmt.Sprintf("POST /payments of %s, key %s, payload %s", o.Owner, o.Key, o.Payload)
	switch o.Unguarded {
	case noKey:
		text = fmt.Sprintf("POST /payments of %s, no key, payload %s", o.Owner, o.Payload)
	case byMethod:
		text = fmt.Sprintf("PUT /payments of %s, payload %s", o.Owner, o.Payload)
	}
	d.add(e, sequence.Event{From: d.clientOf(a), To: d.process(a), Kind: sequence.Call, Text: text})
	if a.starter() != a {
		return
	}
	begins := "starts, policy " + string(a.policy)
	if a.optimistic {
		begins = "starts, optimistic"
	}
	d.add(e, sequence.Event{From: d.process(a), Kind: sequence.Begin, Text: begins, Detail: fmt.Sprintf("Its clock is %v ahead. Lambda ends it at %v.", a.skew, a.ends.Sub(d.w.born))})
}

// fault draws a fault that no other entry shows: a request that does not reach DynamoDB, is refused
// before it is served, or is delayed.
func (d *drawing) fault(e entry) {
	call := sequence.Event{From: d.process(e.actor), To: d.database(e.actor), Kind: sequence.Call, Text: e.request.purpose(), Detail: e.request.detail()}
	note := sequence.Event{From: d.process(e.actor), Kind: sequence.Note, Detail: e.request.detail()}
	if e.request.op == working {
		return // this is not a request to DynamoDB: see actor.work
	}
	switch e.fault { //nolint:exhaustive // other entries show the others
	case RequestLost, KillBefore:
		call.Lost = true
		d.add(e, call)
	case Throttled, FailBefore, Conflict, WriteConflict, WriteThrottled:
		d.add(e, call)
	case RequestLate:
		note.Text = "sends, and the network delays: " + e.request.purpose()
		d.add(e, note)
	case Unfinished:
		note.Text = "sends, and DynamoDB does not finish: " + e.request.purpose()
		d.add(e, note)
	case Stall:
		note.Text = "stands still before it sends: " + e.request.purpose()
		d.add(e, note)
	}
}

// purposes has the text for a request's purpose, by the name that describe gives it.
var purposes = map[string]string{
	"acquire":            "claim the record",
	"take over":          "take the record over",
	"get":                "read the record",
	"complete":           "complete the record",
	"release":            "release the record",
	"hold":               "keep the record for an operator",
	"commit":             "commit the transaction",
	"save step":          "store the result of a step",
	"write part":         "write a part of the answer",
	"settle":             "settle the record",
	"operator's release": "release the record",
	"forget":             "forget the record",
	"erase":              "erase the answer",
}

// purpose returns the request's purpose as text.
func (l label) purpose() string {
	if text, ok := purposes[l.what]; ok {
		return text
	}
	return l.what
}

// text returns the purpose of a request that arrives at the given time, and whether it is late or a
// copy.
func (l label) text(at time.Duration) string {
	text := l.purpose()
	if l.arrivals > 1 {
		text += ", a copy"
	}
	if on := at - l.sent; on > 100*time.Millisecond {
		text += fmt.Sprintf(", %v on the way", on.Round(time.Millisecond))
	}
	return text
}

func (l label) detail() string {
	return fmt.Sprintf("%s (%s), request %d of its sender, sent at %v", l.op, l.what, l.seq, l.sent)
}

// reply returns DynamoDB's reply as text.
func (e *entry) reply() string {
	if e.kind == kindLoss {
		return "its reply to: " + e.request.purpose()
	}
	if e.status == 200 {
		return "done"
	}
	if codes := cancellation(e.body); codes != nil {
		return "canceled: " + strings.Join(codes, ", ")
	}
	var problem struct {
		Type string `json:"__type"`
	}
	if err := json.Unmarshal(e.body, &problem); err != nil {
		return fmt.Sprint(e.status)
	}
	_, name, _ := strings.Cut(problem.Type, "#")
	if name == memdynamo.ConditionalCheckFailed {
		return "refused: the condition does not hold"
	}
	return fmt.Sprintf("%d %s", e.status, name)
}

// party adds a party to the diagram, unless it is there, and returns its ID.
func (d *drawing) party(p sequence.Party) string {
	if !d.known[p.ID] {
		d.known[p.ID] = true
		d.Parties = append(d.Parties, p)
	}
	return p.ID
}

func (d *drawing) world() string {
	return d.party(sequence.Party{ID: "world", Name: "world", Kind: sequence.World})
}

// clientOf returns the ID of the client whose request an invocation serves. It is found by the
// invocation's number: see world.client, withdrawUnstarted and probe.
func (d *drawing) clientOf(a *actor) string {
	switch n := a.id / 1000; {
	case n == 0: // of a small case
		return d.party(sequence.Party{ID: "client", Name: "client", Kind: sequence.Client})
	case n < 800:
		return d.client(n)
	default:
		return d.party(sequence.Party{ID: "probe", Name: "probe", Kind: sequence.Client})
	}
}

func (d *drawing) client(n uint64) string {
	name := fmt.Sprintf("client %d", n)
	return d.party(sequence.Party{ID: name, Name: name, Kind: sequence.Client})
}

// process returns the ID of the party that does what an actor does: the process that serves the
// invocation, an operator, or the world if a is nil.
func (d *drawing) process(a *actor) string {
	switch {
	case a == nil:
		return d.world()
	case a.operation != nil:
		return d.operator(int(a.id-2_000_000)/1000 + 1) //nolint:gosec // a few
	}
	name := fmt.Sprintf("process %d", a.starter().id)
	return d.party(sequence.Party{ID: name, Name: name, Kind: sequence.Process})
}

func (d *drawing) operator(n int) string {
	name := fmt.Sprintf("operator %d", n)
	return d.party(sequence.Party{ID: name, Name: name, Kind: sequence.Operator})
}

// database returns the ID of the database that serves an actor's requests. Each Region may have its
// own.
func (d *drawing) database(a *actor) string {
	name := "DynamoDB"
	if g := d.w.global; g != nil && g.copied() && a != nil {
		name += ", " + regionNames[g.plan.mode][a.region]
	}
	return d.party(sequence.Party{ID: name, Name: name, Kind: sequence.Database})
}
