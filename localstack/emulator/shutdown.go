package emulator

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Close refuses new requests, and by [ErrClosed] those that wait in line; waits for
// the invocations in progress, no longer than they may take (Options.InitTimeout of a
// process that starts, and the function's Timeout), nor than Start's context; and
// ends all processes. When it returns, they are gone. It may be called again.
func (e *Emulator) Close() error {
	e.once.Do(func() {
		if e.unwatch != nil {
			e.unwatch()
		}
		e.closeErr = e.shutdown()
	})
	return e.closeErr
}

func (e *Emulator) shutdown() error {
	var closing sync.WaitGroup
	for _, p := range e.pools {
		closing.Go(func() { p.close(e.ctx) })
	}
	closing.Wait()
	// Every invocation has its answer now; what is left is to write it.
	ctx, cancel := context.WithTimeout(context.Background(), writeAnswers)
	defer cancel()
	var errs []error
	for _, server := range e.servers {
		if err := server.Shutdown(ctx); err != nil {
			errs = append(errs, server.Close())
		}
	}
	e.serving.Wait()
	return errors.Join(errs...)
}

// writeAnswers bounds how long Close waits for clients to take their answers.
const writeAnswers = 2 * time.Second
