// Package sequence draws what several parties did to each other as a sequence diagram, in HTML.
//
// [WriteHTML] writes a diagram as one self-contained file. A page that shows events as they
// happen serves [Files] and calls the script:
//
//	const diagram = sequence.diagram(document.getElementById("diagram"));
//	diagram.party(party); // the JSON of a Party, before the first event that names it
//	diagram.event(event); // the JSON of an Event; takes its place by its time
//	diagram.clear();      // forgets all parties and events
//	sequence.legend(document.getElementById("legend"), ["effect"]); // without kinds of events that it never has
package sequence

import (
	"fmt"
	"time"
)

// A Diagram is what WriteHTML draws.
type Diagram struct {
	Title   string  `json:"title"`
	Summary string  `json:"summary"` // one paragraph under the title
	Parties []Party `json:"parties"`
	Events  []Event `json:"events"` // in any order; events of the same time keep their order
}

// A Party takes part in events, and has a column of the diagram. The columns are in the order of the
// constants of type [Kind]. Columns of the same kind are in the order of the parties.
type Party struct {
	ID   string `json:"id"`   // unique within the diagram
	Name string `json:"name"` // as shown: "client", "payments, process 2", "DynamoDB"
	Kind Kind   `json:"kind"`
}

// Kind decides the symbol of a party and the place of its column.
type Kind string

// The kinds of parties.
const (
	Client   Kind = "client"
	Process  Kind = "process" // has a bar from its Begin to its End
	Database Kind = "database"
	Service  Kind = "service" // an outside service, such as a bank
	Operator Kind = "operator"
	World    Kind = "world" // what no other party does, such as a hardware failure, or time that passes
)

// An Event is something that happened. It has a row of the diagram. A reader can open the row of an
// event that has a Detail or a Record.
type Event struct {
	At      time.Duration `json:"at"`                // since the beginning; in JSON: nanoseconds
	From    string        `json:"from"`              // a party's ID
	To      string        `json:"to,omitempty"`      // a party's ID; empty: something that From did or noticed by itself
	Request string        `json:"request,omitempty"` // ties the events of one client request together: a short label, such as "7"
	Kind    EventKind     `json:"kind"`
	Text    string        `json:"text"`             // one line
	Detail  string        `json:"detail,omitempty"` // shown in the opened row, under the Record: a body, an explanation
	Lost    bool          `json:"lost,omitempty"`   // a Call or Reply that did not arrive
	Wrong   bool          `json:"wrong,omitempty"`  // a broken rule, or an error that deserves a mark
	Record  *Record       `json:"record,omitempty"` // the record after this event, if the event changed the record
	Ends    bool          `json:"ends,omitempty"`   // a Reply that ends From, as an End does
}

// EventKind decides how an event is drawn.
type EventKind string

// The kinds of events.
const (
	Call   EventKind = "call"   // an arrow from From to To
	Reply  EventKind = "reply"  // a dashed arrow from From to To
	Note   EventKind = "note"   // From noticed something
	Begin  EventKind = "begin"  // From starts
	End    EventKind = "end"    // From ends or dies
	Effect EventKind = "effect" // From did what cannot be undone, such as a payment
)

// A Record is a record of a database at one moment.
type Record struct {
	ID     string  `json:"id"`    // unique within the diagram; events with the same ID show one record as it changes
	Title  string  `json:"title"` // as shown: the key
	State  State   `json:"state"`
	Fields []Field `json:"fields"` // in the order in which they are shown; none if the record is deleted
}

// A Field is one attribute of a record.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// State is the label of a record. A label other than these constants has no color.
type State string

// The states of a record.
const (
	InProgress State = "in progress" // an attempt has the lease
	Completed  State = "completed"   // has an answer that is replayed
	Released   State = "released"    // the next attempt may run at once
	Held       State = "held"        // waits for an operator
	Deleted    State = "deleted"     // is not in the table
)

// check returns an error if two parties have the same ID, a party has none, an event has no From, or
// an event names a party that the diagram does not have.
func (d Diagram) check() error {
	known := map[string]bool{"": true}
	for _, p := range d.Parties {
		if known[p.ID] {
			return fmt.Errorf("sequence: two parties, or one without an ID: %q; give each party an ID of its own", p.ID)
		}
		known[p.ID] = true
	}
	for i, e := range d.Events {
		for _, id := range []string{e.From, e.To} {
			if !known[id] {
				return fmt.Errorf("sequence: event %d (%q) names the party %q, which is not in Parties", i, e.Text, id)
			}
		}
		if e.From == "" {
			return fmt.Errorf("sequence: event %d (%q) has no From", i, e.Text)
		}
	}
	return nil
}
