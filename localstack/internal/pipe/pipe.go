// Package pipe lets a program stop in an orderly way when nobody reads its output any more, as in
// `up | head`, and outlive connections that its clients close.
package pipe

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Outlive keeps SIGPIPE from ending the process. A write to a pipe or a connection that nobody
// reads raises SIGPIPE, so the signal doesn't say whose end was closed. The write fails with
// EPIPE; see [Output].
func Outlive() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // nobody takes it from the channel
}

// Output is a standard output that calls Stop when nobody reads W any more.
type Output struct {
	W    io.Writer
	Stop func()
}

// Write implements io.Writer.
func (o Output) Write(b []byte) (int, error) {
	n, err := o.W.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		o.Stop()
	}
	return n, err //nolint:wrapcheck // as of os.Stdout
}
