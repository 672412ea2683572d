package eventsource

import (
	"context"
	"time"
)

// deliverAll delivers what comes through a lane, batch after batch, until it is closed
// or polling ends.
func (s *streamPoller) deliverAll(polling context.Context, lane <-chan []change) {
	var rest []change
	for {
		batch := s.gather(polling, lane, rest)
		if len(batch) == 0 || polling.Err() != nil {
			return
		}
		n := min(len(batch), s.source.BatchSize)
		rest = batch[n:]
		s.deliver(polling, batch[:n:n])
	}
}

// gather adds to what there is until it is a batch, or more: for as long as the window
// that begins with its first record, or without one what can be had at once. It is
// empty only at the end.
func (s *streamPoller) gather(polling context.Context, lane <-chan []change, batch []change) []change {
	if len(batch) == 0 {
		select {
		case batch = <-lane: // nil when it is closed
		case <-polling.Done():
		}
	}
	if len(batch) == 0 {
		return nil
	}
	if s.source.Window == 0 {
		return atOnce(lane, batch, s.source.BatchSize)
	}
	window := time.NewTimer(s.source.Window)
	defer window.Stop()
	for len(batch) < s.source.BatchSize {
		select {
		case page, open := <-lane:
			if !open {
				return batch
			}
			batch = append(batch, page...)
		case <-window.C:
			return batch
		case <-polling.Done():
			return batch
		}
	}
	return batch
}

// atOnce adds what a lane has at this moment.
func atOnce(lane <-chan []change, batch []change, size int) []change {
	for len(batch) < size {
		select {
		case page, open := <-lane:
			if !open {
				return batch
			}
			batch = append(batch, page...)
		default:
			return batch
		}
	}
	return batch
}

func payloads(changes []change) [][]byte {
	all := make([][]byte, len(changes))
	for i, c := range changes {
		all[i] = c.record
	}
	return all
}
