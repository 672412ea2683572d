package window

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
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
	story   string    // the story that is being played
	look    string    // what to look for in the diagram
	summed  string    // the record of the latest answer that the page got
	sum     string    // how often the handler ran for a key, and what was charged
	key     int       // the highest number of a key that begins with keyName
	waiting string    // what is waited for; empty: nothing
	until   time.Time // how long
}

// State is what the page shows of the controls.
type State struct {
	Armed   []string `json:"armed"`   // names of faults that will strike
	Busy    bool     `json:"busy"`    // something is under way
	Story   string   `json:"story"`   // the story that is being played; empty: none
	Look    string   `json:"look"`    // what to look for in the diagram
	Sum     string   `json:"sum"`     // how often the handler ran for a key, and what was charged
	Key     string   `json:"key"`     // a key that no request has had
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
	s := State{Armed: armed, Busy: c.busy > 0, Story: c.story, Look: c.look, Sum: c.sum, Key: c.newKey(), Waiting: c.waiting, Repeat: c.last.URL != ""}
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

// keyName begins the keys that the page suggests. A number follows.
const keyName = "order-"

// newKey returns a key that no request has had.
func (c *controls) newKey() string { return fmt.Sprint(keyName, c.key+1) }

// noticeKey notes that a request has a key.
func (c *controls) noticeKey(key string) {
	rest, ok := strings.CutPrefix(key, keyName)
	if n, err := strconv.Atoi(rest); ok && err == nil && n < math.MaxInt32 {
		c.key = max(c.key, n)
	}
}

// begin runs a task for the page, which returns what to look for afterwards. While it runs, the
// page shows that something is under way.
func (w *Window) begin(task func(ctx context.Context) (look string, err error)) error {
	w.update(func(c *controls) { c.busy, c.look, c.sum, c.summed = c.busy+1, "", "", "" })
	err := w.run(func() {
		look, err := task(w.ctx)
		w.mu.Lock()
		record := w.controls.summed
		w.mu.Unlock()
		w.sumUp(w.ctx, record)
		w.update(func(c *controls) {
			c.busy--
			if c.story == "" && look != "" {
				c.look = look
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
	if w.playing() {
		return errStory
	}
	r, err := w.request(f)
	if err != nil {
		return err
	}
	return w.sendOnce(r)
}

// sendOnce sends a request, which can be repeated afterwards.
func (w *Window) sendOnce(r request) error {
	w.update(func(c *controls) { c.last = r })
	return w.sendNext(r)
}

// sendNext sends a request. Its answer is the next one, which the client loses if it is to lose one.
func (w *Window) sendNext(r request) error {
	deaf := false
	w.update(func(c *controls) { deaf, c.deaf = c.deaf, false })
	return w.begin(func(ctx context.Context) (string, error) { return w.doAndLook(ctx, r, deaf) })
}

// doAndLook sends a request, and says what to look for. If its answer to DynamoDB is held up,
// overtake says it in the end.
func (w *Window) doAndLook(ctx context.Context, r request, deaf bool) (string, error) {
	o, err := w.do(ctx, r, deaf)
	if err != nil || o.late {
		return "", err
	}
	return o.caption(), nil
}

// repeat sends the last request again: as often as is said, or with another body.
func (w *Window) repeat(times int, change bool) error {
	if w.playing() {
		return errStory
	}
	w.mu.Lock()
	r := w.controls.last
	w.mu.Unlock()
	if r.URL == "" {
		return errors.New("there is nothing to repeat: send a request first")
	}
	if times > 1 {
		return w.begin(func(ctx context.Context) (string, error) {
			return w.doTimes(ctx, r, min(times, crowd)).caption(), nil
		})
	}
	if change {
		r.Body = otherBody(r.Body)
		return w.sendNext(r)
	}
	return w.sendOnce(r)
}
