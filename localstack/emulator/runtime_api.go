package emulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
)

// runtimeAPI serves one process: "Using the Lambda runtime API for custom
// runtimes". Only the runtime of that process knows the port.
func runtimeAPI(p *process) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", p.serveNext)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", p.serveResponse)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", p.serveError)
	mux.HandleFunc("POST /2018-06-01/runtime/init/error", p.serveInitError)
	return mux
}

// serveNext blocks until there is an invocation. To ask for the next one ends
// the invocation before it, so that its slot is free again.
func (p *process) serveNext(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	first, late := !p.isReady, p.late
	ended, abandoned := p.endOne()
	p.isReady = true
	p.waiting++
	p.mu.Unlock()
	if abandoned { // Lambda waits for an answer that can't come any more
		p.answer(ended, ended.failure("Runtime.InvalidState", "the runtime asked for the next invocation before it answered this one"))
	}
	switch {
	case late: // Lambda would have killed it, so it must not serve again
		p.kill()
		<-r.Context().Done()
		return
	case first:
		close(p.ready)
	case ended != nil:
		p.pool.release(p)
	}
	if ended != nil {
		p.finish(ended)
	}
	select {
	case inv := <-p.work:
		p.take(inv)
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Lambda-Runtime-Aws-Request-Id", inv.requestID)
		h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(inv.deadline.UnixMilli(), 10))
		h.Set("Lambda-Runtime-Invoked-Function-Arn", inv.functionARN)
		h.Set("Lambda-Runtime-Trace-Id", inv.traceID)
		if inv.clientContext != "" {
			h.Set("Lambda-Runtime-Client-Context", inv.clientContext)
		}
		_, _ = w.Write(inv.payload) // a runtime that is gone is seen by wait
	case <-r.Context().Done():
		p.hangUp()
	}
}

// endOne ends the invocation whose worker asks for its next, and tells whether
// that left it without an answer. Workers can't be told apart. One that asks has
// answered, as a rule. Otherwise, if no worker is missing besides the one that
// asks, it gave up an invocation: the one that there is, or one that is late. Of
// several others it can't be said which, so they are left to their timeouts.
func (p *process) endOne() (ended *invocation, abandoned bool) {
	at := slices.IndexFunc(p.running, func(inv *invocation) bool { return inv.posted })
	if all := len(p.running)+p.waiting >= p.pool.slots; at < 0 && all && len(p.running) > 0 {
		if p.pool.slots == 1 {
			at = 0
		} else {
			at = slices.IndexFunc(p.running, func(inv *invocation) bool { return inv.late })
		}
	}
	if at < 0 { // a worker's first call
		return nil, false
	}
	ended = p.running[at]
	p.running = slices.Delete(p.running, at, at+1)
	ended.timeout.Stop()
	return ended, ended.claim()
}

// finish lets go who waits for an invocation's slot.
func (p *process) finish(inv *invocation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	inv.finish()
}

// hangUp is what it means that a worker gave up waiting for an invocation. Of
// several workers none does so but before the end of the process: aws-lambda-go
// lets go of those that wait when one panicked or had an answer refused, lets
// those that run finish, and exits. A single worker may ask again.
func (p *process) hangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting--
	if p.pool.slots > 1 && !p.isLeaving {
		p.isLeaving = true
		close(p.leaving)
	}
}

func (p *process) serveResponse(w http.ResponseWriter, r *http.Request) {
	body, size, err := readLimited(r.Body)
	if err != nil {
		runtimeError(w, http.StatusBadRequest, "InvalidRequest", err.Error())
		return
	}
	known, late := p.settle(r.PathValue("id"), func(inv *invocation) Result {
		if size > maxResponseBytes {
			result := inv.failure("Function.ResponseSizeTooLarge", "")
			result.Payload = mustJSON(map[string]string{
				"errorType":    "Function.ResponseSizeTooLarge",
				"errorMessage": fmt.Sprintf("Response payload size (%d bytes) exceeded maximum allowed payload size (%d bytes).", size, maxResponseBytes),
			})
			return result
		}
		// A runtime that fails while it streams its answer says so in trailers.
		if kind := r.Trailer.Get("Lambda-Runtime-Function-Error-Type"); kind != "" {
			return inv.failure(kind, "the function failed while it wrote its answer")
		}
		return Result{Payload: body}
	})
	switch {
	case !known:
		refuseAnswer(w, late)
	case size > maxResponseBytes:
		runtimeError(w, http.StatusRequestEntityTooLarge, "RequestEntityTooLarge",
			fmt.Sprintf("Exceeded maximum allowed payload size (%d bytes).", maxResponseBytes))
	default:
		accepted(w)
	}
}

func (p *process) serveError(w http.ResponseWriter, r *http.Request) {
	body, _, err := readLimited(r.Body)
	if err != nil {
		runtimeError(w, http.StatusBadRequest, "InvalidRequest", err.Error())
		return
	}
	known, late := p.settle(r.PathValue("id"), func(*invocation) Result {
		return Result{Payload: body, FunctionError: "Unhandled"}
	})
	if !known {
		refuseAnswer(w, late)
		return
	}
	accepted(w)
}

// refuseAnswer tells a runtime that nobody waits for its answer. That it is late
// is said as by AWS's own Runtime API for Managed Instances (its Runtime
// Interface Emulator); the documentation does not name the status.
func refuseAnswer(w http.ResponseWriter, late bool) {
	if late {
		runtimeError(w, http.StatusGone, "InvokeTimeout", "Invoke timeout")
		return
	}
	runtimeError(w, http.StatusBadRequest, "InvalidRequestID", "Invalid request ID")
}

func (p *process) serveInitError(w http.ResponseWriter, r *http.Request) {
	body, _, err := readLimited(r.Body)
	if err != nil {
		runtimeError(w, http.StatusBadRequest, "InvalidRequest", err.Error())
		return
	}
	p.mu.Lock()
	ready := p.isReady
	if !ready {
		p.initError = body
	}
	p.mu.Unlock()
	if ready {
		runtimeError(w, http.StatusForbidden, "InvalidStateTransition", "init/error after the first call of invocation/next")
		return
	}
	accepted(w)
}

// readLimited reads a runtime's answer; of one that is too large it keeps
// nothing and reports the size.
func readLimited(r io.Reader) (body []byte, size int64, err error) {
	body, err = io.ReadAll(io.LimitReader(r, maxResponseBytes+1))
	if err != nil {
		return nil, 0, errors.New("the body could not be read: " + err.Error())
	}
	if len(body) <= maxResponseBytes {
		return body, int64(len(body)), nil
	}
	rest, err := io.Copy(io.Discard, r)
	if err != nil {
		return nil, 0, errors.New("the body could not be read: " + err.Error())
	}
	return nil, int64(len(body)) + rest, nil
}

func accepted(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, `{"status":"OK"}`)
}

func runtimeError(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(mustJSON(map[string]string{"errorType": kind, "errorMessage": message}))
}

// mustJSON marshals what always marshals.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
