package eventsource

import (
	"context"
	"time"
)

// deliverAll delivers the records of a lane in batches of at most BatchSize, one batch after the
// other, until the lane is closed or polling ends.
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

// gather adds records of the lane to batch until it has at least BatchSize records, and returns
// it; the result may be larger. The window begins with the first record, and gather returns when
// it ends. Without a window, gather waits only for the first record and adds the records that the
// lane has ready. The result is empty only if the lane is closed or polling has ended.
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

// atOnce adds the records that the lane has ready, without waiting, until batch has at least size
// records.
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
