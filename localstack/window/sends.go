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
	request request
	deaf    bool // the client hangs up just before the answer arrives
	hangUp  context.CancelFunc
	shown   <-chan struct{} // closed when the diagram shows what became of the answer
	show    func()          // closes shown; package net/http may send a request twice
}

// answer is what a client got.
type answer struct {
	lost   bool // nothing, because the client hung up
	status int
	code   string // of a problem document
	fresh  bool   // not a replay
}

// do sends a request and waits for its answer. A deaf client hangs up just before the
// answer arrives.
func (w *Window) do(ctx context.Context, r request, deaf bool) (answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, strings.NewReader(r.Body))
	if err != nil {
		return answer{}, fmt.Errorf("make the request: %w", err)
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
		return answer{lost: true}, nil
	}
	if err != nil {
		return answer{}, fmt.Errorf("send %s %s: %w", r.Method, r.URL, err)
	}
	got := recorder{header: resp.Header, status: resp.StatusCode}
	_, err = io.Copy(&got.body, resp.Body)
	if closing := resp.Body.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return answer{}, fmt.Errorf("read the answer to %s %s: %w", r.Method, r.URL, err)
	}
	return answer{status: got.status, code: got.code(), fresh: !got.isReplay()}, nil
}

// doTimes sends the same request several times at once, and returns a sentence that sums the
// answers up.
func (w *Window) doTimes(ctx context.Context, r request, times int) string {
	var all sync.WaitGroup
	var mu sync.Mutex
	fresh, replayed, early, failed := 0, 0, 0, 0
	for range times {
		all.Go(func() {
			a, err := w.do(ctx, r, false)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil || a.status >= http.StatusInternalServerError:
				failed++
			case a.status == http.StatusConflict:
				early++
			case a.fresh:
				fresh++
			default:
				replayed++
			}
		})
	}
	all.Wait()
	seen := fmt.Sprintf("%d requests: %d got the handler's answer, %d the stored answer, %d were told to come back later", times, fresh, replayed, early)
	if failed > 0 {
		seen += fmt.Sprintf(", %d failed", failed)
	}
	w.history.add(sequence.Event{From: ours.ID, Kind: sequence.Note, Text: seen})
	return seen + "."
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
