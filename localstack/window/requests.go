package window

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/lambdaidem/toolkit/internal/sequence"
	"github.com/lambdaidem/toolkit/localstack/emulator"
)

// maxExchanges is how many of the latest HTTP requests are remembered. A call of DynamoDB
// that belongs to an earlier one is not shown.
const maxExchanges = 1000

// exchange is an HTTP request to the functions, and what is known of its way.
type exchange struct {
	label     string // the request's number, as the diagram shows it
	traceID   string
	client    string // the client's party ID
	send      *send  // nil if another client has sent it
	request   request
	headers   http.Header   // as received
	process   string        // the party ID of the process that has it; empty before
	asked     string        // id of the request's record; empty before it is known
	record    string        // id of the record that the request's attempt has locked; empty before
	committed string        // the ClientRequestToken of the latest transaction that was carried out
	steps     []string      // the names of the steps whose results the record has
	stores    *query        // the latest request to DynamoDB that stores the answer; nil when the exchange is over
	settled   chan struct{} // closed when an answer that was held up has arrived; nil: none was
	seen      outcome
	answered  bool // the process has answered
	dead      bool // the process has ended without an answer, or is killed at its timeout
	over      bool // the client has its answer, or has gone
}

// sendHeader marks a request that the page has sent by the id of its [send]. No function
// sees the header.
const sendHeader = "X-Window-Send"

// watchRequests is the emulator's middleware: it shows every HTTP request and its answer.
func (w *Window) watchRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		const most = 16 << 20 // more than a gateway takes
		body, err := io.ReadAll(io.LimitReader(r.Body, most))
		if err != nil {
			return // the client has gone while it sent
		}
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), r.Body))
		x := w.received(r, body)
		answer := &recorder{header: http.Header{}, status: http.StatusOK}
		next.ServeHTTP(answer, r)
		if x.send != nil && x.send.deaf {
			x.send.hangUp()
			<-r.Context().Done()
		}
		lost := r.Context().Err() != nil
		w.reply(x, answer, lost)
		if x.send != nil {
			x.send.show()
		} else { // the page sums its own requests up itself
			_ = w.run(func() { w.sumUp(w.ctx, w.askedBy(x)) })
		}
		if !lost {
			answer.writeTo(rw)
		}
	})
}

// received remembers a request. It is shown when a process or the gateway has it.
func (w *Window) received(r *http.Request, body []byte) *exchange {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	send := w.sends[r.Header.Get(sendHeader)]
	r.Header.Del(sendHeader)
	x := &exchange{
		label: fmt.Sprint(w.count), traceID: emulator.TraceID(r.Context()), client: others.ID, send: send, headers: r.Header.Clone(),
		request: request{
			Method: r.Method, URL: urlOf(r), Key: r.Header.Get(keyHeader), Body: string(body), Header: r.Header.Clone(),
		},
	}
	if send != nil {
		x.client, x.request = ours.ID, send.request
		send.exchange = x
	}
	w.controls.noticeKey(x.request.Key)
	w.exchanges = append(w.exchanges, x)
	if len(w.exchanges) > maxExchanges {
		w.exchanges = slices.Delete(w.exchanges, 0, len(w.exchanges)-maxExchanges)
	}
	return x
}

// urlOf returns the URL under which the window can send a request again: at the address where it
// has arrived. The client's Host may name another server.
func urlOf(r *http.Request) string {
	at, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return fmt.Sprintf("http://%v%s", at, r.URL.RequestURI())
}

// exchange returns the HTTP request that an invocation belongs to, or nil. The caller has w.mu.
func (w *Window) exchange(traceID string) *exchange {
	if traceID == "" {
		return nil
	}
	for _, x := range slices.Backward(w.exchanges) {
		if x.traceID == traceID {
			return x
		}
	}
	return nil
}

// call returns the event of the request's arrival at a party.
func (x *exchange) call(to string) sequence.Event {
	text := x.request.Method + " " + pathOf(x.request.URL)
	if x.request.Key != "" {
		text += ", key " + x.request.Key
	}
	return sequence.Event{From: x.client, To: to, Request: x.label, Kind: sequence.Call, Text: text, Detail: written(x.headers, []byte(x.request.Body))}
}

// reply shows the answer to a request. A process that has died has not given it: the
// gateway answers in its place.
func (w *Window) reply(x *exchange, answer *recorder, lost bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	from := x.process
	if !x.answered {
		from = gateway.ID
	}
	if x.process == "" {
		w.history.add(x.call(gateway.ID))
	}
	x.over, x.request.Body, x.request.Header, x.headers, x.stores = true, "", nil, nil, nil // they may be large, and are in the diagram
	w.history.add(sequence.Event{
		From: from, To: x.client, Request: x.label, Kind: sequence.Reply, Lost: lost, Text: answer.gist(x.seen.ran), Detail: written(answer.header, answer.body.Bytes()),
	})
	x.seen.lost, x.seen.status, x.seen.code, x.seen.replayed = lost, answer.status, answer.code(), answer.isReplay()
	x.seen.died = x.dead
	x.seen.retryAfter = answer.header.Get("Retry-After")
	x.seen.gaveUp = !lost && !x.answered && x.process != "" && !x.dead
	w.controls.notice(x, answer)
}

// askedBy returns the record of an exchange, or "".
func (w *Window) askedBy(x *exchange) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return x.asked
}

// recorder is a response that is shown before it is sent.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *recorder) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *recorder) WriteHeader(status int) { a.status = status }

// Write implements http.ResponseWriter.
func (a *recorder) Write(b []byte) (int, error) { return a.body.Write(b) }

func (a *recorder) writeTo(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes()) // the client may have gone
}

// code returns the code of a problem document (RFC 9457), or "".
func (a *recorder) code() string {
	var problem struct{ Code string }
	if json.Unmarshal(a.body.Bytes(), &problem) != nil {
		return ""
	}
	return problem.Code
}

// isReplay reports whether the guard says that the answer was given before.
func (a *recorder) isReplay() bool { return a.header.Get("X-Idempotency-Replayed") == "true" }

// gist says in one line what the client gets. ran reports whether the handler has run for it.
func (a *recorder) gist(ran bool) string {
	text := fmt.Sprintf("%d %s", a.status, http.StatusText(a.status))
	if code := a.code(); a.status >= 400 && code != "" {
		text = fmt.Sprintf("%d %s", a.status, code)
		if after := a.header.Get("Retry-After"); after != "" {
			text += ": retry after " + after + " s"
		}
	}
	if a.isReplay() {
		text += ": the first answer again"
		if !ran {
			text += ", the handler did not run"
		}
	}
	return text
}

// written returns the headers that say something to a reader, and the body.
func written(header http.Header, body []byte) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(header)) {
		switch name {
		case "Accept-Encoding", "User-Agent", "Content-Length", "Accept", "Apigw-Requestid", "Connection":
			continue
		}
		for _, value := range header[name] {
			if name == "Authorization" {
				value, _, _ = strings.Cut(value, ".")
				value += "…"
			}
			_, _ = fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	if len(body) > 0 {
		_, _ = fmt.Fprintf(&b, "\n%s", body)
	}
	return strings.TrimSpace(b.String())
}
