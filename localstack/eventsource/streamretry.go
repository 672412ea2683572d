package eventsource

import (
	"context"
	"time"
)

// piece is a batch, or a part of a batch that is still to be delivered.
type piece struct {
	changes []change
	retries int // number of retries so far, up to MaximumRetryAttempts
	invokes int
	last    outcome // outcome of the last invocation, if there was one
}

// deliver delivers a batch in order. It returns when every record has succeeded or was given up,
// or when polling ends. After a failure, it does what Lambda does:
//
//   - Records before the lowest one that the function reported have succeeded.
//   - If BisectBatchOnFunctionError is set, the batch is split at the lowest reported record, or
//     else in the middle. The parts are delivered one after the other. A split does not count as
//     a retry.
//   - Otherwise the remaining records are retried. After MaximumRetryAttempts retries, they are
//     given up and reported to OnFailure.
//   - Before each attempt, records older than MaximumRecordAgeInSeconds are given up.
//   - An invocation that was refused does not count as a retry.
func (s *streamPoller) deliver(polling context.Context, batch []change) {
	pieces := []piece{{changes: batch}}
	pause := retryPauses()
	for len(pieces) > 0 && polling.Err() == nil {
		p := &pieces[0]
		if old := s.tooOld(p.changes); old > 0 {
			s.giveUp(*p, p.changes[:old], "RecordAgeExceeded")
			p.changes = p.changes[old:]
		}
		if n := fitting(payloads(p.changes)); n < len(p.changes) {
			second := piece{changes: p.changes[n:], retries: p.retries}
			p.changes = p.changes[:n]
			pieces = append([]piece{*p, second}, pieces[1:]...)
			continue
		}
		if len(p.changes) == 0 {
			pieces = pieces[1:]
			continue
		}
		o := s.attempt(p)
		switch {
		case o.succeeded():
			pieces = pieces[1:]
			pause = retryPauses()
		case o.refused != nil:
			if s.ctx.Err() != nil {
				return // Start's context has ended
			}
			s.printf("%d records of %s were not delivered, they are retried: %v", len(p.changes), p.changes[0].shard, o.refused)
			pause.wait(polling)
		default:
			parts, wait := s.afterFailure(*p, o)
			pieces = append(parts, pieces[1:]...)
			if wait {
				pause.wait(polling)
			} else {
				pause = retryPauses()
			}
		}
	}
}

// attempt invokes the function once with a piece. It updates the piece unless the invocation was
// refused.
func (s *streamPoller) attempt(p *piece) outcome {
	ids := make([]string, len(p.changes))
	for i, c := range p.changes {
		ids[i] = c.sequence
	}
	o := s.invoke(payloads(p.changes), ids)
	if o.refused == nil {
		p.invokes++
		p.last = o
	}
	return o
}

// afterFailure returns the pieces to deliver instead of the piece p, which failed with outcome o.
// It returns none if the records were given up. wait reports whether the result is a retry,
// before which deliver must pause.
func (s *streamPoller) afterFailure(p piece, o outcome) (parts []piece, wait bool) {
	shard := p.changes[0].shard
	why := o.failed
	done := 0
	if why == nil {
		done = o.reported[0] // "Lambda uses the record with the lowest sequence number as the checkpoint"
		s.printf("%d records of %s failed at the record %s", len(p.changes), shard, p.changes[done].sequence)
	} else {
		s.printf("%d records of %s failed: %v", len(p.changes), shard, why)
	}
	p.changes = p.changes[done:]
	switch {
	case s.source.Bisects && done > 0:
		s.printf("bisected: %d records left from %s on", len(p.changes), p.changes[0].sequence)
		return []piece{p}, false
	case s.source.Bisects && len(p.changes) > 1:
		// If the function reported the first record, there is nothing before it to split off, so
		// the batch is split in the middle as after an error.
		first, second := p, p
		half := len(p.changes) / 2
		first.changes, second.changes = p.changes[:half], p.changes[half:]
		s.printf("bisected: %d records and %d records", len(first.changes), len(second.changes))
		return []piece{first, second}, false
	case s.source.Retries >= 0 && p.retries >= s.source.Retries:
		s.giveUp(p, p.changes, "RetryAttemptsExhausted")
		return nil, false
	}
	p.retries++
	return []piece{p}, true
}

// tooOld returns how many records at the beginning of changes are older than
// MaximumRecordAgeInSeconds. It returns 0 if the source has no maximum age.
func (s *streamPoller) tooOld(changes []change) int {
	if s.source.MaxAge == 0 {
		return 0
	}
	for i, c := range changes {
		if time.Since(c.youngest()) <= s.source.MaxAge {
			return i
		}
	}
	return len(changes)
}
