package window

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/lambdaidem/toolkit/internal/sequence"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// keyHeader is the header by which clients name their operations, unless a function's guard
// has another one.
const keyHeader = "Idempotency-Key"

// crowd is how many requests are sent at once by the control for many.
const crowd = 50

// request is an HTTP request to the functions.
type request struct {
	Method string
	URL    string
	Key    string // empty: none
	Body   string
	Header http.Header // further headers
}

// send is a request that the page has sent and that has no answer yet.
type send struct {
	request  request
	exchange *exchange // nil before the emulator has received the request
	deaf     bool      // the client hangs up just before the answer arrives
	hangUp   context.CancelFunc
	shown    <-chan struct{} // closed when the diagram shows what became of the answer
	show     func()          // closes shown; package net/http may send a request twice
}

// do sends a request, waits for its answer, and returns what the window has observed. A deaf
// client hangs up just before the answer arrives.
func (w *Window) do(ctx context.Context, r request, deaf bool) (outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, strings.NewReader(r.Body))
	if err != nil {
		return outcome{}, fmt.Errorf("make the request: %w", err)
	}
	maps.Copy(req.Header, r.Header)
	req.Header.Del("Content-Length") // of another client's request, which a fault repeats
	if r.Key != "" {
		req.Header.Set(keyHeader, r.Key)
	}
	id := rand.Text()
	req.Header.Set(sendHeader, id)
	shown := make(chan struct{})
	s := &send{request: r, deaf: deaf, hangUp: cancel, shown: shown, show: sync.OnceFunc(func() { close(shown) })}
	w.mu.Lock()
	w.sends[id] = s
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.sends, id)
	}()
	resp, err := w.client.Do(req)
	if deaf && ctx.Err() != nil {
		select {
		case <-s.shown:
		case <-w.ctx.Done():
		}
		return w.outcomeOf(s), nil
	}
	if err != nil {
		return outcome{}, fmt.Errorf("send %s %s: %w", r.Method, r.URL, err)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if closing := resp.Body.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return outcome{}, fmt.Errorf("read the answer to %s %s: %w", r.Method, r.URL, err)
	}
	w.mu.Lock()
	received := s.exchange != nil
	w.mu.Unlock()
	if !received {
		return outcome{}, fmt.Errorf("send %s %s: the server refused the request before anything saw it: %s", r.Method, r.URL, resp.Status)
	}
	return w.outcomeOf(s), nil
}

// outcomeOf returns what the window has observed of a request, whose record is the one to sum
// up next.
func (w *Window) outcomeOf(s *send) outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.exchange == nil {
		return outcome{}
	}
	w.controls.summed = s.exchange.asked
	return s.exchange.seen
}

// crowdOutcome counts the answers to many requests.
type crowdOutcome struct{ all, fresh, replayed, early, unguarded, failed int }

// doTimes sends the same request several times at once, and counts the answers.
func (w *Window) doTimes(ctx context.Context, r request, times int) crowdOutcome {
	var all sync.WaitGroup
	var mu sync.Mutex
	c := crowdOutcome{all: times}
	for range times {
		all.Go(func() {
			o, err := w.do(ctx, r, false)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && o.replayed:
				c.replayed++
			case err == nil && o.has(lambdaidem.ErrInProgress):
				c.early++
			case err == nil && o.stored:
				c.fresh++
			case err == nil && o.status < http.StatusBadRequest:
				c.unguarded++
			default:
				c.failed++
			}
		})
	}
	all.Wait()
	w.history.add(sequence.Event{From: ours.ID, Kind: sequence.Note, Text: c.counts()})
	return c
}

func (c crowdOutcome) counts() string {
	text := fmt.Sprintf("%d requests: %d got the handler's answer, %d the stored answer, %d were told to come back later", c.all, c.fresh, c.replayed, c.early)
	if c.unguarded > 0 {
		text += fmt.Sprintf(", %d got an answer that no record keeps", c.unguarded)
	}
	if c.failed > 0 {
		text += fmt.Sprintf(", %d failed or were refused", c.failed)
	}
	return text
}

// caption says what to look for in the rows of the requests.
func (c crowdOutcome) caption() string {
	text := c.counts() + ". "
	switch {
	case c.unguarded > 0:
		return text + "Nothing protects those whose answer no record keeps: the handler may have run for each of them."
	case c.fresh == 1:
		return text + "One request locked the record, and every other was refused the lock. Find the one row that says \"runs the handler\"."
	case c.fresh == 0 && c.replayed > 0:
		return text + "The record was completed before, so no handler ran."
	}
	return text + "The lock lets one attempt run at a time: its row says \"runs the handler\"."
}

// otherBody returns a body that means something else.
func otherBody(body string) string {
	var object map[string]any
	decoder := json.NewDecoder(strings.NewReader(body))
	decoder.UseNumber()
	if decoder.Decode(&object) != nil {
		return body + " (another)"
	}
	if n, ok := object["amount"].(json.Number); ok {
		if amount, err := n.Int64(); err == nil {
			return strings.Replace(body, n.String(), fmt.Sprint(amount+1), 1)
		}
	}
	object["another"] = "body"
	return string(bytes.TrimSpace(encode(object)))
}

// pathOf returns the path and the query of a URL.
func pathOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	return u.RequestURI()
}
