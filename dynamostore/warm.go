package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// warmTimeout limits the time that Warm takes. It is short because Lambda stops an init phase
// that takes longer than 10 seconds (AWS, "Understanding the Lambda execution environment
// lifecycle").
const warmTimeout = 2 * time.Second

// Warmed is the result of [Store.Warm]. It implements [slog.LogValuer].
type Warmed struct {
	// Took is the time that Warm took.
	Took time.Duration
	// Transport is the transport that the store's requests use.
	Transport Transport
	// Err says what Warm failed to do. The first request then has to do that itself. Err is nil if
	// nothing failed.
	Err error
}

// LogValue returns a group with took_ms (milliseconds), transport, and error if Err is not
// nil.
func (w Warmed) LogValue() slog.Value {
	attrs := []slog.Attr{slog.Int64("took_ms", w.Took.Milliseconds()), slog.String("transport", string(w.Transport))}
	if w.Err != nil {
		attrs = append(attrs, slog.String("error", w.Err.Error()))
	}
	return slog.GroupValue(attrs...)
}

// Warm does in advance what the first request of a process would otherwise have to do: it gets the
// credentials and opens a connection to DynamoDB. With Options.Encryption it also gets the current
// key. Call it before lambda.Start, because Lambda gives the init phase more processor time than an
// invocation of a small function:
//
//	slog.Info("ready", "store", store.Warm(ctx))
//
// Warm reads one item that does not exist. That costs a read unit and needs the permission
// dynamodb:GetItem. Without the permission, Warm still opens the connection. If the environment
// variable [lambdaidem.SwitchOff] is true, Warm does nothing.
//
// Warm never prevents a start: it returns after about 2 seconds at the latest, it returns an error
// only in Warmed.Err, and it recovers from panics. Warm does not help a process whose first
// invocation comes minutes later, as with provisioned concurrency: the connection may be closed by
// then.
func (s *Store) Warm(ctx context.Context) Warmed {
	if off, _ := strconv.ParseBool(os.Getenv(lambdaidem.SwitchOff)); off {
		return Warmed{}
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, warmTimeout)
	defer cancel()
	results := make(chan error, 2) // DynamoDB and the source of the keys are asked at the same time
	go func() {
		results <- recovered(func() error {
			_, err := s.read(ctx, opWarm, probeID)
			return err
		})
	}()
	go func() { results <- recovered(func() error { return s.warmKey(ctx) }) }()
	var errs []error
	for range cap(results) {
		errs = append(errs, firstOf(ctx, results))
	}
	which, _ := s.Transport()
	return Warmed{Took: time.Since(start), Transport: which, Err: errors.Join(errs...)}
}

// firstOf returns the first result to arrive. If ctx ends first, firstOf waits another 50 ms for a
// result, and then returns an error that wraps context.Cause(ctx). It does not wait longer, so that
// an application's function that ignores ctx can't delay the start.
func firstOf(ctx context.Context, results <-chan error) error {
	select {
	case err := <-results:
		return err
	case <-ctx.Done():
	}
	const patience = 50 * time.Millisecond // enough for a function that heeds ctx to return its own error
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-results:
		return err
	case <-timer.C:
		return fmt.Errorf("no answer in time, and the function goes on in the background: %w", context.Cause(ctx))
	}
}

// warmKey gets the key to encrypt with, so that it is cached. It does nothing without
// Options.Encryption.
func (s *Store) warmKey(ctx context.Context) error {
	if s.keys == nil {
		return nil
	}
	return s.fetchKey(ctx, opWarm)
}

// recovered calls f and returns its error. If f panics, recovered returns an error with the
// value of the panic. f can panic because it calls functions of the application, such as its
// credentials provider.
func recovered(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}
