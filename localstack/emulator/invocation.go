package emulator

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Lambda's quotas for synchronous invocations ("Lambda quotas"). The limit of
// an answer has a hundred bytes for the runtime's own use.
const (
	maxRequestBytes  = 6 * 1024 * 1024
	maxResponseBytes = 6*1024*1024 + 100
)

// Why the emulator refuses an invocation, as the Invoke API does.
var (
	// ErrFunctionNotFound: the template has no such function.
	ErrFunctionNotFound = errors.New("function not found")
	// ErrTooManyRequests: MaxProcesses are busy, and Throttle is set.
	ErrTooManyRequests = errors.New("rate exceeded")
	// ErrRequestTooLarge: the event has more than 6 MB (6,291,456 bytes).
	ErrRequestTooLarge = errors.New("request payload too large")
	// ErrClosed: Close was called. Nothing of the invocation has begun.
	ErrClosed = errors.New("the emulator is closed")
)

// Result is what an invocation returned.
type Result struct {
	RequestID string
	// Payload is the function's answer or, with FunctionError, a JSON object
	// with errorType and errorMessage.
	Payload []byte
	// FunctionError is empty, or "Unhandled" if the function returned an
	// error, panicked, crashed or timed out.
	FunctionError string
	// LogTail is the end of the invocation's log, at most 4 KB.
	LogTail []byte
}

// invocation is one event on its way through a process.
type invocation struct {
	requestID     string
	traceID       string
	payload       []byte
	clientContext string // JSON, from X-Amz-Client-Context
	functionARN   string
	deadline      time.Time // set when a runtime takes the invocation
	started       time.Time
	answered      chan Result   // buffered, written once
	finished      chan struct{} // closed when its slot is free again, or given up

	// These change under mu of the process that has it.
	claimed bool        // it has its answer, or somebody is about to give it
	posted  bool        // the runtime has answered, whether or not that counted
	late    bool        // its answer was the timeout's
	over    bool        // finished is closed
	timeout *time.Timer // from when the runtime took it
}

// claim takes the right to answer, which is had once.
func (i *invocation) claim() bool {
	first := !i.claimed
	i.claimed = true
	return first
}

// finish lets go who waits for the slot.
func (i *invocation) finish() {
	if !i.over {
		i.over = true
		close(i.finished)
	}
}

func newInvocation(ctx context.Context, functionARN string, payload []byte) *invocation {
	return &invocation{
		requestID:   newUUID(),
		traceID:     cmp.Or(TraceID(ctx), newTraceID()),
		payload:     payload,
		functionARN: functionARN,
		answered:    make(chan Result, 1),
		finished:    make(chan struct{}),
	}
}

// failure returns an answer that Lambda makes in the function's place.
func (i *invocation) failure(errorType, message string) Result {
	payload, err := json.Marshal(map[string]string{
		"errorType":    errorType,
		"errorMessage": fmt.Sprintf("RequestId: %s Error: %s", i.requestID, message),
	})
	if err != nil { // a map of strings always marshals
		panic(err)
	}
	return Result{RequestID: i.requestID, Payload: payload, FunctionError: "Unhandled"}
}

func newUUID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails, see crypto/rand
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails, see crypto/rand
	return hex.EncodeToString(b)
}
