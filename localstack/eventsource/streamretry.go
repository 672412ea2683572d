package eventsource

import (
	"context"
	"time"
)

// piece is a batch, or what is left of one.
type piece struct {
	changes []change
	retries int // of MaximumRetryAttempts
	invokes int
	last    outcome // of the last invocation, if there was one
}

// deliver delivers a batch in its order and returns when every record of it has
// succeeded or was given up, or polling ends. What a failure does is Lambda's:
//
//   - records before the lowest that was reported have succeeded;
//   - a batch that is bisected, there or in the middle, has its parts delivered one
//     after the other, at the cost of no retry;
//   - else the batch is retried, until its retries are exhausted: then it is given up,
//     and told to OnFailure;
//   - before each attempt what is older than MaximumRecordAgeInSeconds is given up;
//   - an invocation that was refused costs no retry.
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
				return // nobody is there to retry
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

// attempt invokes the function once with a piece.
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

// afterFailure is what is to be delivered in place of a piece that failed, and whether
// that is a retry, which waits.
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
		// A report of the first record splits the batch as an error does: there is
		// nothing before it to split off.
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

// tooOld is how many records, from the first on, are older than the source allows.
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
