package emulator

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
)

const logTailBytes = 4096 // what X-Amz-Log-Result shows ("Invoke", Lambda API reference)

// lockedWriter lets many processes share one log.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// printf writes one line. A log that can't be written is no reason to fail.
func (l *lockedWriter) printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = fmt.Fprintf(l.w, format+"\n", args...)
}

// output reads what a process writes to stdout and stderr, passes it on line
// by line with a prefix, and keeps the tail of every current invocation. What a
// process writes while it has several may be of any of them, so it goes to all.
type output struct {
	pipe   *os.File
	prefix string
	log    *lockedWriter

	mu    sync.Mutex
	line  []byte // begun, not yet ended
	start []byte // the tail of what came before the first invocation
	tails map[string][]byte
}

// follow reads until every writer of the pipe is gone.
func (o *output) follow() {
	raw, err := o.pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(o.readAvailable)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush()
}

// flush ends a line that was begun.
func (o *output) flush() {
	if len(o.line) > 0 {
		o.emit(append(o.line, '\n'))
		o.line = nil
	}
}

// drain reads what the pipe holds now. A runtime writes its log before it
// posts its answer, so that after drain the tail is whole.
func (o *output) drain() {
	raw, err := o.pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { o.readAvailable(fd) })
}

// readAvailable reads the non-blocking pipe until it is empty, and reports
// whether it has ended.
func (o *output) readAvailable(fd uintptr) (ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	buffer := make([]byte, 32*1024)
	for {
		n, err := syscall.Read(int(fd), buffer)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			return false
		case err != nil || n == 0:
			return true
		default:
			o.split(buffer[:n])
		}
	}
}

func (o *output) split(data []byte) {
	for {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			o.line = append(o.line, data...)
			return
		}
		o.emit(append(o.line, data[:end+1]...))
		o.line, data = nil, data[end+1:]
	}
}

func (o *output) emit(line []byte) {
	o.log.mu.Lock()
	_, _ = fmt.Fprintf(o.log.w, "%s%s", o.prefix, line)
	o.log.mu.Unlock()
	o.keep(line)
}

func (o *output) keep(line []byte) {
	if o.tails == nil {
		o.start = withTail(o.start, line)
	}
	for requestID, tail := range o.tails {
		o.tails[requestID] = withTail(tail, line)
	}
}

func withTail(tail, line []byte) []byte {
	tail = append(tail, line...)
	if over := len(tail) - logTailBytes; over > 0 {
		tail = bytes.Clone(tail[over:])
	}
	return tail
}

// begin starts the tail of a new invocation.
func (o *output) begin(requestID string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.tails == nil {
		o.tails = map[string][]byte{}
	}
	o.tails[requestID] = fmt.Appendf(nil, "START RequestId: %s Version: $LATEST\n", requestID)
}

// end closes an invocation's tail with Lambda's platform lines and returns it.
// That of an invocation that never began is what its process said at its start.
func (o *output) end(requestID, lines string) []byte {
	o.drain()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush()
	tail, begun := o.tails[requestID]
	if !begun {
		tail = bytes.Clone(o.start)
	}
	delete(o.tails, requestID)
	return withTail(tail, []byte(lines))
}
