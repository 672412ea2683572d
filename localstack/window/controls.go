package window

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"
)

// controls is the state of the page's controls. It is guarded by Window.mu.
type controls struct {
	routes  []route
	last    request   // what was sent last, to be repeated
	payment string    // id of the latest payment
	deaf    bool      // the client hangs up before the next answer
	busy    int       // requests and stories under way
	struck  string    // the fault that struck last, since a request was sent
	story   string    // the story that is being played
	look    string    // what to look for in the diagram
	waiting string    // what is waited for; empty: nothing
	until   time.Time // how long
}

// State is what the page shows of the controls.
type State struct {
	Armed   []string `json:"armed"`   // names of faults that will strike
	Busy    bool     `json:"busy"`    // something is under way
	Story   string   `json:"story"`   // the story that is being played; empty: none
	Look    string   `json:"look"`    // what to look for in the diagram
	Waiting string   `json:"waiting"` // what is waited for; empty: nothing
	Until   int64    `json:"until"`   // how long, in epoch milliseconds
	Repeat  bool     `json:"repeat"`  // there is a request to repeat
}

// tellState sends the state to the pages.
func (w *Window) tellState() {
	w.telling.Lock() // so that no earlier state is told after a later one
	defer w.telling.Unlock()
	armed := w.faults.Armed() // takes a lock that must not be taken under w.mu
	w.mu.Lock()
	defer w.mu.Unlock()
	c := &w.controls
	if c.deaf {
		armed = append(armed, faultResponse)
	}
	s := State{Armed: armed, Busy: c.busy > 0, Story: c.story, Look: c.look, Waiting: c.waiting, Repeat: c.last.URL != ""}
	if c.waiting != "" {
		s.Until = c.until.UnixMilli()
	}
	w.history.setState(s)
}

// update changes the state of the controls and tells the pages.
func (w *Window) update(change func(c *controls)) {
	w.mu.Lock()
	change(&w.controls)
	w.mu.Unlock()
	w.tellState()
}

// notice takes what later requests need out of an answer.
func (c *controls) notice(x *exchange, a *recorder) {
	var made struct{ ID string }
	if a.status == http.StatusCreated && strings.HasSuffix(x.request.URL, "/payments") && json.Unmarshal(a.body.Bytes(), &made) == nil && made.ID != "" {
		c.payment = made.ID
	}
}

// begin runs a task for the page. While it runs, the page shows that something is under way.
func (w *Window) begin(look string, task func(ctx context.Context) error) error {
	w.update(func(c *controls) { c.busy, c.look, c.struck = c.busy+1, "", "" })
	err := w.run(func() {
		err := task(w.ctx)
		w.update(func(c *controls) {
			c.busy--
			if c.story == "" && look != "" && c.struck != faultLate { // overtake says it in the end
				c.look = cmp.Or(lookFor(c.struck), look)
			}
			if err != nil && w.ctx.Err() == nil {
				c.look = "It did not work: " + err.Error()
			}
		})
	})
	if err != nil {
		w.update(func(c *controls) { c.busy-- })
	}
	return err
}

// sendForm sends what a form asks for.
func (w *Window) sendForm(f form) error {
	r, err := w.request(f)
	if err != nil {
		return err
	}
	return w.sendOnce(r, lookSend)
}

// sendOnce sends a request, which can be repeated afterwards.
func (w *Window) sendOnce(r request, look string) error {
	deaf := false
	w.update(func(c *controls) {
		c.last, deaf, c.deaf = r, c.deaf, false
	})
	if deaf {
		look = lookFor(faultResponse)
	}
	return w.begin(look, func(ctx context.Context) error {
		_, err := w.do(ctx, r, deaf)
		return err
	})
}

// repeat sends the last request again: as often as is said, or with another body.
func (w *Window) repeat(times int, change bool) error {
	w.mu.Lock()
	r := w.controls.last
	w.mu.Unlock()
	if r.URL == "" {
		return errors.New("there is nothing to repeat: send a request first")
	}
	if times > 1 {
		return w.begin(lookMany, func(ctx context.Context) error {
			w.doTimes(ctx, r, min(times, crowd)) // the sum is in the diagram
			return nil
		})
	}
	if change {
		r.Body = otherBody(r.Body)
		return w.begin(lookOther, func(ctx context.Context) error {
			_, err := w.do(ctx, r, false)
			return err
		})
	}
	return w.sendOnce(r, lookRepeat)
}
