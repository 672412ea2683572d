package simulator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
)

// entry is something that happened in a world. The timeline of a run has all its entries. It is
// printed as text, and drawn as a diagram (diagram.go).
type entry struct {
	at    time.Duration
	kind  entryKind
	actor *actor // who did it, or to whom it happened; nil: the world
	text  string // what happened, if the other fields don't say it

	check Check // the check that found a broken rule
	lost  bool  // the client had stopped waiting for this answer
	done  bool  // the operation succeeded

	// For a request to DynamoDB.
	request label
	fault   Fault            // the fault that the request met, or that killed the actor
	status  int              // the reply's HTTP status
	body    []byte           // the reply's body, unless the request succeeded
	write   *memdynamo.Write // the write to a record; nil: there was none
}

// entryKind says what kind of thing happened.
type entryKind int

// The kinds of entries.
const (
	kindNote      entryKind = iota // described by the text alone
	kindPolicy                     // a process has another policy than the plan's
	kindOperator                   // an operator did something, or was told of it
	kindAsk                        // a client sent its request, for which a process may have started
	kindGiveUp                     // a client stopped waiting
	kindAnswer                     // an invocation ended, with an answer or without one
	kindFault                      // a request met a fault
	kindUnreached                  // a request did not reach a Region that had failed
	kindServe                      // a request reached DynamoDB
	kindLoss                       // DynamoDB's reply was lost
	kindReply                      // DynamoDB's reply arrived
	kindCutOff                     // a process waited in vain for a reply
	kindDeath                      // a process was killed
	kindEffect                     // a handler had an effect
	kindExpiry                     // DynamoDB deleted a record that had expired
	kindBroken                     // a rule was broken
)

// label identifies a request to DynamoDB in the timeline.
type label struct {
	op   string        // the operation
	what string        // what the request is for: see describe
	seq  int           // the number of the request among those of its actor, from 1 on
	sent time.Duration // when the request was sent, since the world began

	arrivals int // how often the request reached DynamoDB
}

// note adds an entry with a text. A nil actor stands for the world.
func (b *journal) note(a *actor, format string, args ...any) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.noteLocked(a, format, args...)
}

func (b *journal) noteLocked(a *actor, format string, args ...any) {
	b.addLocked(entry{kind: kindNote, actor: a, text: fmt.Sprintf(format, args...)})
}

// add adds an entry for something that happens now.
func (b *journal) add(e entry) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.addLocked(e)
}

func (b *journal) addLocked(e entry) {
	e.at = time.Since(b.w.born)
	b.entries = append(b.entries, e)
}

// sortedEntries returns all entries in the order of time. Entries of different actors at the same
// time are in the order of the actors, because it is chance which goroutine was first.
func (b *journal) sortedEntries() []entry {
	entries := slices.Clone(b.entries)
	slices.SortStableFunc(entries, func(x, y entry) int {
		switch {
		case x.at != y.at:
			return int(min(max(x.at-y.at, -1), 1))
		case x.actor != nil && y.actor != nil:
			return cmp.Compare(x.actor.id, y.actor.id)
		default:
			return 0
		}
	})
	return entries
}

// timeline returns the entries as text.
func (b *journal) timeline() string {
	var out strings.Builder
	for _, e := range b.sortedEntries() {
		line := e.line()
		if line == "" {
			continue
		}
		who := "world"
		if e.actor != nil {
			o := e.actor.order
			who = fmt.Sprintf("process %d (%s/%s/%s)", e.actor.id, o.Owner, o.Key, o.Payload)
		}
		fmt.Fprintf(&out, "%12.3f ms  %-22s %s\n", float64(e.at)/1e6, who, line)
	}
	return out.String()
}

// line returns the entry as printed, or "" if it is drawn but not printed.
func (e *entry) line() string {
	switch e.kind { //nolint:exhaustive // the others are not printed
	case kindFault:
		return e.request.what + ": " + string(e.fault)
	case kindServe:
		return "database: " + e.request.what + ": " + cmp.Or(e.text, e.served())
	case kindGiveUp:
		return "its client gives up waiting"
	case kindAnswer:
		return "answers " + e.text
	case kindDeath:
		return "dies: " + string(e.fault)
	case kindExpiry:
		return "TTL deletes the record, which was " + e.write.Before["status"].Text
	case kindBroken:
		return fmt.Sprintf("BROKEN %s: %s", e.check, e.text)
	case kindOperator:
		return "operator " + e.text
	case kindNote, kindPolicy, kindEffect:
		return e.text
	}
	return ""
}

// served returns DynamoDB's reply as text.
func (e *entry) served() string {
	codes := cancellation(e.body)
	switch {
	case e.status == 200:
		return "done"
	case codes != nil:
		return fmt.Sprintf("cancelled: %q", codes)
	case strings.Contains(string(e.body), memdynamo.ConditionalCheckFailed):
		return "refused"
	default:
		return string(e.body)
	}
}
