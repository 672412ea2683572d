package window

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lambdaidem/toolkit/internal/sequence"
)

const (
	// maxEvents is the maximum number of events that a history keeps. When there are more,
	// it forgets the older half, and so do the pages that are open.
	maxEvents = 2500
	// maxDetail is the maximum number of bytes of each text of an event, and of each field of
	// its record. Longer texts are cut.
	maxDetail = 4 << 10
)

// history keeps the latest events of the diagram for pages that are opened or reloaded
// later, and passes new ones on to the pages that are open. It also passes on the state of
// the controls, of which it keeps the latest alone.
//
// Pages get messages by server-sent events. The id of a message is the run's name and a
// number, which grows by 1 from one message to the next. A page that reconnects says which
// id it saw last.
type history struct {
	ctx context.Context // its end ends the messages to all pages
	run string          // the name of this history, so that ids of another run are recognized

	mu       sync.Mutex
	began    time.Time                 // the time 0 of the diagram; zero before the first event
	parties  map[string]sequence.Party // all that events may name
	messages []message                 // of events, and of each party before its first event
	last     int                       // the number of the latest message
	afresh   int                       // a page that has seen only earlier messages clears its diagram
	state    []byte                    // JSON
	states   int                       // how often state changed
	changed  chan struct{}             // closed, and replaced, at each change
}

// message is a party or an event, as pages get it.
type message struct {
	number int
	name   string   // of the server-sent event: party or event
	party  string   // the party's ID; empty for an event
	names  []string // the parties that an event names
	data   []byte   // JSON
}

func newHistory(ctx context.Context) *history {
	return &history{ctx: ctx, run: rand.Text()[:8], parties: map[string]sequence.Party{}, changed: make(chan struct{})}
}

// party makes a party known. It gets a column when an event names it.
func (h *history) party(p sequence.Party) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.parties[p.ID] = p
}

// forget removes a party that is gone. Events that name it are added as long as its column is
// there, and are dropped afterwards.
func (h *history) forget(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.parties, id)
}

// add adds an event, which happens now. The parties that it names must be known.
func (h *history) add(e sequence.Event) { h.addAt(time.Now(), e) }

// addAt adds an event that happened at a time.
func (h *history) addAt(at time.Time, e sequence.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.began.IsZero() {
		h.began = at
	}
	e.At = max(0, at.Sub(h.began))
	e.Text, e.Detail = clip(e.Text), clip(e.Detail)
	names := []string{e.From}
	if e.To != "" {
		names = append(names, e.To)
	}
	var missing []sequence.Party
	for _, id := range names {
		if slices.ContainsFunc(h.messages, func(m message) bool { return m.party == id }) {
			continue
		}
		p, known := h.parties[id]
		if !known {
			return
		}
		missing = append(missing, p)
	}
	for _, p := range missing {
		h.append(message{name: "party", party: p.ID, data: encode(p)})
	}
	h.append(message{name: "event", names: names, data: encode(e)})
	if len(h.messages) > maxEvents {
		h.shorten()
	}
	h.tell()
}

// since returns the place of a time in the diagram. The result ok is false if the diagram is empty.
func (h *history) since(t time.Time) (at time.Duration, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return t.Sub(h.began), !h.began.IsZero()
}

func (h *history) append(m message) {
	h.last++
	m.number = h.last
	h.messages = append(h.messages, m)
}

// shorten forgets the older half of the messages, except for parties that the remaining
// events name.
func (h *history) shorten() {
	older, rest := h.messages[:maxEvents/2], h.messages[maxEvents/2:]
	named := map[string]bool{}
	for _, m := range rest {
		for _, id := range m.names {
			named[id] = true
		}
	}
	var kept []message
	for _, m := range older {
		if named[m.party] {
			kept = append(kept, m)
		}
	}
	h.messages = append(kept, rest...)
	h.startAfresh()
}

// clear forgets all events. The next event begins a diagram at time 0.
func (h *history) clear() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.messages, h.began = nil, time.Time{}
	h.startAfresh()
	h.tell()
}

// startAfresh has every page clear its diagram and draw the messages that are kept.
func (h *history) startAfresh() {
	h.last++
	h.afresh = h.last
}

// setState replaces the state of the controls.
func (h *history) setState(state any) {
	data := encode(state)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state = data
	h.states++
	h.tell()
}

// tell wakes everybody who waits for a change. The caller has h.mu.
func (h *history) tell() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// reader is what one page has been sent.
type reader struct {
	number int // the number of the latest message
	states int
}

// after returns the server-sent events that bring a page up to date, and a channel that is
// closed when there are more.
func (h *history) after(r *reader) (text string, more <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	if r.number < h.afresh {
		b.WriteString("event: clear\ndata: {}\n\n")
		r.number = 0
	}
	for _, m := range h.messages {
		if m.number <= r.number {
			continue
		}
		if m.number > h.afresh { // a page that has missed one of the others must start afresh
			_, _ = fmt.Fprintf(&b, "id: %s-%d\n", h.run, m.number)
		}
		_, _ = fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", m.name, m.data)
	}
	r.number = h.last
	if r.states < h.states {
		_, _ = fmt.Fprintf(&b, "event: state\ndata: %s\n\n", h.state)
		r.states = h.states
	}
	return b.String(), h.changed
}

const (
	// heartbeat is how often a page hears something, so that the server notices that the
	// page has gone.
	heartbeat = 15 * time.Second
	// patience is how long a page may take to receive what it is sent.
	patience = 10 * time.Second
)

// ServeHTTP sends server-sent events until the request's context ends. A page that sends
// Last-Event-ID gets what it has missed, and otherwise everything that is kept.
func (h *history) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	page := &reader{}
	if run, number, ok := strings.Cut(r.Header.Get("Last-Event-ID"), "-"); ok && run == h.run {
		_, _ = fmt.Sscanf(number, "%d", &page.number) // 0 if it is no number
	} else if ok { // the page shows an earlier run
		page.number = -1
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	control := http.NewResponseController(w)
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	text, more := h.after(page)
	for {
		_ = control.SetWriteDeadline(time.Now().Add(patience)) // every server has one
		if _, err := w.Write([]byte(text)); err != nil || control.Flush() != nil {
			return
		}
		select {
		case <-more:
			text, more = h.after(page)
		case <-beat.C:
			text = ": still here\n\n"
		case <-r.Context().Done():
			return
		case <-h.ctx.Done():
			return
		}
	}
}

// clip cuts a text to maxDetail.
func clip(text string) string {
	if len(text) <= maxDetail {
		return text
	}
	return strings.ToValidUTF8(text[:maxDetail], "") + fmt.Sprintf("\n… and %d bytes more", len(text)-maxDetail)
}

// encode is json.Marshal for values that always have a JSON form.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
