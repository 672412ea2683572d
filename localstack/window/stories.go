package window

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// story is a short play: it sends requests and lets something go wrong, and a sentence says
// what to see in it.
type story struct {
	ID    string
	Title string
	Does  string // what a click on it will do
	Look  string // what to look for afterwards
	play  func(ctx context.Context, w *Window, r request) (seen string, err error)
}

var stories = []story{
	{
		ID: "twice", Title: "The answer is lost, so the client sends twice",
		Does: "Sends a request, loses its answer on the way to the client, and sends the same request again.",
		Look: "The first request did its work, and its answer was stored before it was lost. The second one finds the record completed: " +
			"it gets the stored answer, and the handler does not run again. Without the record, the client would have paid twice.",
		play: func(ctx context.Context, w *Window, r request) (string, error) {
			if _, err := w.do(ctx, r, true); err != nil {
				return "", err
			}
			_, err := w.do(ctx, r, false)
			return "", err
		},
	},
	{
		ID: "lock", Title: "The reply to the lock is lost",
		Does: "Sends a request, and loses DynamoDB's reply to the write that locks the record.",
		Look: "The process can't know whether it has the lock, so it asks again. DynamoDB refuses the second lock, and sends the record along: " +
			"it has the token of this very attempt. So the attempt knows that the lock is its own, and goes on.",
		play: func(ctx context.Context, w *Window, r request) (string, error) {
			if err := w.arm(faultLock); err != nil {
				return "", err
			}
			_, err := w.do(ctx, r, false)
			return "", err
		},
	},
	{
		ID: "dies", Title: "The process dies half way",
		Does: "Kills the process before it stores its answer, repeats the request at once, and again when the lease is over.",
		Look: "The dead process leaves a locked record behind. As long as its lease lasts, nobody may run: the first repetition is told to come back. " +
			"Then the next attempt takes the record over and runs the handler, as attempt 2. " +
			"Attempt 1 has written nothing: its writes were to be committed together with its answer.",
		play: func(ctx context.Context, w *Window, r request) (string, error) {
			if err := w.arm(faultKill); err != nil {
				return "", err
			}
			for range 2 {
				if _, err := w.do(ctx, r, false); err != nil {
					return "", err
				}
			}
			return "", w.outlast(ctx, r, w.recordOf(r.Key))
		},
	},
	{
		ID: "fifty", Title: "Fifty at once",
		Does: fmt.Sprintf("Sends the same request %d times at the same moment.", crowd),
		Look: "One request locks the record, and every other is refused the lock. Those who come while the handler runs are told to come back later (409). " +
			"Those who come after it get its answer. The handler runs once: count the rows in which an answer is stored.",
		play: func(ctx context.Context, w *Window, r request) (string, error) {
			return w.doTimes(ctx, r, crowd), nil
		},
	},
	{
		ID: "other", Title: "Another body under the same key",
		Does: "Sends a request, and then a different one under the same key.",
		Look: "The record has a fingerprint of the first body. The second body has another fingerprint, so the second request is refused (422): " +
			"its client would otherwise get an answer to something that it did not ask for.",
		play: func(ctx context.Context, w *Window, r request) (string, error) {
			if _, err := w.do(ctx, r, false); err != nil {
				return "", err
			}
			r.Body = otherBody(r.Body)
			_, err := w.do(ctx, r, false)
			return "", err
		},
	},
}

var errStory = errors.New("a story is being played: wait for its end")

// tell plays a story, in a new diagram and under a key of its own: with a payment or, if the
// template is not the project's, with the request that the form asks for.
func (w *Window) tell(id string, f form) error {
	var s *story
	for i := range stories {
		if stories[i].ID == id {
			s = &stories[i]
		}
	}
	if s == nil {
		return fmt.Errorf("there is no story %q", id)
	}
	if w.samples() {
		f = form{Sample: "payment"}
	}
	r, err := w.request(f)
	if err != nil {
		return err
	}
	busy := false
	w.update(func(c *controls) {
		if busy = c.story != ""; !busy {
			c.story, c.look = id, ""
		}
	})
	if busy {
		return errStory
	}
	w.disarm()
	w.clear()
	w.mu.Lock()
	w.told++
	r = r.withKey(fmt.Sprintf("%s-%d", id, w.told))
	w.mu.Unlock()
	w.update(func(c *controls) { c.last = r })
	return w.begin("", func(ctx context.Context) error {
		seen, err := s.play(ctx, w, r)
		w.disarm()
		w.update(func(c *controls) { c.story, c.look = "", strings.TrimSpace(seen+" "+s.Look) })
		return err
	})
}
