package stack

import (
	"errors"
	"os"

	"github.com/lambdaidem/toolkit/localstack/eventsource"
)

// Stop stops the event source mappings, the functions, the emulator, the queues, DynamoDB Local
// and the outside services, in this order, and removes the binaries. If DynamoDB Local or SQS was
// running before, Stop only deletes the stack's tables or queues there. A second call does
// nothing.
func (s *Stack) Stop() error {
	var errs []error
	delivered := func() error { return nil }
	if s.sources != nil {
		// Close the sources and the emulator at the same time. The sources wait for
		// invocations that wait for a process, and only the emulator's Close refuses those.
		// The messages of a refused invocation are not lost: they are delivered again.
		closed := make(chan error, 1)
		go func(m *eventsource.Mappings) { closed <- m.Close() }(s.sources)
		delivered = func() error { return <-closed }
		s.sources = nil
	}
	if s.emulator != nil {
		errs = append(errs, s.emulator.Close())
		s.emulator = nil
	}
	errs = append(errs, delivered())
	for _, gate := range s.gates {
		errs = append(errs, gate.Close())
	}
	s.gates = nil
	if s.sqs != nil {
		errs = append(errs, s.stopSQS())
		s.sqs = nil
	}
	if s.database != nil {
		if !s.database.Owned() {
			errs = append(errs, s.deleteTables())
		}
		errs = append(errs, s.database.Stop())
		s.database = nil
	}
	if s.clearing != nil {
		errs = append(errs, s.clearing.Close())
		s.clearing = nil
	}
	if s.mailer != nil {
		errs = append(errs, s.mailer.Close())
		s.mailer = nil
	}
	if s.folder != "" {
		errs = append(errs, os.RemoveAll(s.folder))
		s.folder = ""
	}
	return errors.Join(errs...)
}
