package window

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/localstack/rehearsal"
)

// story is a short play: it sends requests and lets something go wrong, and a sentence says
// what to see in it.
type story struct {
	ID    string
	Title string
	Does  string // what a click on it will do
	Look  string // what to look for afterwards, if the story went as planned
	play  func(ctx context.Context, w *Window, r request) (played, error)
}

// played is what came of a story.
type played struct {
	seen    string  // what happened, in numbers; may be empty
	last    outcome // of the request that the story is about; empty: of many
	planned bool    // it went as the story's Look says
}

// caption says what to look for after a story.
func (p played) caption(s *story) string {
	text := s.Look
	if !p.planned || p.last.died { // no story ends with a death
		text = "This story did not go as planned."
		if p.last != (outcome{}) {
			text += " " + p.last.caption()
		}
	}
	return strings.TrimSpace(p.seen + " " + text)
}

var stories = []story{
	{
		ID: "twice", Title: "The answer is lost, so the client sends twice",
		Does: "Sends a request, loses its answer on the way to the client, and sends the same request again.",
		Look: "The first request did its work, and its answer was stored before it was lost. The second one finds the record completed: " +
			"it gets the stored answer, and the handler does not run again. Without the record, the work would have been done twice.",
		play: func(ctx context.Context, w *Window, r request) (played, error) {
			first, err := w.do(ctx, r, true)
			if err != nil {
				return played{}, err
			}
			o, err := w.do(ctx, r, false)
			return played{last: o, planned: first.lost && first.stored && o.replayed}, err
		},
	},
	{
		ID: "lock", Title: "The reply to the lock is lost",
		Does: "Sends a request, and loses DynamoDB's reply to the write that locks the record.",
		Look: "The process can't know whether it has the lock, so it asks again. DynamoDB refuses the second lock, and sends the record along: " +
			"it has the token of this very attempt. So the attempt knows that the lock is its own, and goes on.",
		play: withFault(faultLock, func(o outcome) bool { return o.ownToken && o.stored }),
	},
	{
		ID: "completion", Title: "The reply to the stored answer is lost",
		Does: "Sends a request, and loses DynamoDB's reply to the write that stores the answer together with the handler's effects.",
		Look: "The write was carried out, and the process can't know it. It sends the same write again, with the same ClientRequestToken. " +
			"DynamoDB recognizes the ClientRequestToken, writes nothing again, and says that all is done. So the effects happen once. " + recognizedFor,
		play: withFault(faultCompletion, func(o outcome) bool { return o.repeated && o.stored }),
	},
	{
		ID: "dies", Title: "The process dies half way",
		Does: "Kills the process before it stores its answer, repeats the request at once, and again when the lease is over.",
		Look: "The dead process leaves a locked record behind. As long as its lease lasts, nobody may run: the first repetition is told to come back. " +
			"Then the next attempt takes the record over and runs the handler, as attempt 2. " +
			"Attempt 1 has written nothing: its writes were to be committed together with its answer.",
		play: func(ctx context.Context, w *Window, r request) (played, error) {
			if err := w.arm(faultKill, r.Key); err != nil {
				return played{}, err
			}
			first, err := w.do(ctx, r, false)
			if err != nil {
				return played{}, err
			}
			second, err := w.do(ctx, r, false)
			if err != nil {
				return played{}, err
			}
			o, err := w.outlast(ctx, r, w.recordOf(r.Key))
			planned := first.died && !first.stored && second.has(lambdaidem.ErrInProgress) && o.lockedBy == rehearsal.Takeover && o.stored
			return played{last: o, planned: planned}, err
		},
	},
	{
		ID: "late", Title: "An answer arrives too late",
		Does: "Holds up the write that stores the answer until the lease is over and another attempt has finished. Then the write arrives.",
		Look: "Attempt 1 was not dead: the network held up its first try to store the answer, and lost the others. Its client got a 503, which asks it to repeat the request. " +
			"When the lease was over, the repetition took the record over, as attempt 2, so the handler ran twice. But the late write has the token of attempt 1, " +
			"and the record has that of attempt 2: DynamoDB refuses the write with all its effects. If nobody had taken the record over, the late write would have counted.",
		play: func(ctx context.Context, w *Window, r request) (played, error) {
			if err := w.arm(faultLate, r.Key); err != nil {
				return played{}, err
			}
			if _, err := w.do(ctx, r, false); err != nil {
				return played{}, err
			}
			o, err := w.lateOutcome(ctx, r.Key)
			return played{last: o, planned: o.overtaken && o.has(lambdaidem.ErrOutcomeUnknown)}, err
		},
	},
	{
		ID: "fifty", Title: "Fifty at once",
		Does: fmt.Sprintf("Sends the same request %d times at the same moment.", crowd),
		Look: "Those who come while the handler runs are told to come back later (409). Those who come after it get its answer.",
		play: func(ctx context.Context, w *Window, r request) (played, error) {
			c := w.doTimes(ctx, r, crowd)
			p := played{seen: c.caption(), planned: c.fresh == 1}
			if w.most > 0 && w.most < crowd {
				p.seen += fmt.Sprintf(" At most %d processes run at once: the other requests wait until one is free.", w.most)
			}
			return p, nil
		},
	},
	{
		ID: "other", Title: "Another body under the same key",
		Does: "Sends a request, and then a different one under the same key.",
		Look: "The record has a fingerprint of the first body. The second body has another fingerprint, so the second request is refused (422): " +
			"its client would otherwise get an answer to something that it did not ask for.",
		play: func(ctx context.Context, w *Window, r request) (played, error) {
			if _, err := w.do(ctx, r, false); err != nil {
				return played{}, err
			}
			r.Body = otherBody(r.Body)
			o, err := w.do(ctx, r, false)
			return played{last: o, planned: o.has(lambdaidem.ErrPayloadMismatch)}, err
		},
	},
}

// withFault returns the play of a story in which a fault strikes one request.
func withFault(name string, planned func(outcome) bool) func(context.Context, *Window, request) (played, error) {
	return func(ctx context.Context, w *Window, r request) (played, error) {
		if err := w.arm(name, r.Key); err != nil {
			return played{}, err
		}
		o, err := w.do(ctx, r, false)
		return played{last: o, planned: planned(o)}, err
	}
}

var errStory = errors.New("a story is being played: wait for its end")

// playing reports whether a story is being played.
func (w *Window) playing() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.controls.story != ""
}

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
	w.startAfresh()
	w.mu.Lock()
	w.told++
	r = r.withKey(fmt.Sprintf("%s-%d", id, w.told))
	w.mu.Unlock()
	w.update(func(c *controls) { c.last = r })
	return w.begin(func(ctx context.Context) (string, error) {
		p, err := s.play(ctx, w, r)
		w.disarm()
		w.update(func(c *controls) { c.story = "" })
		return p.caption(s), err
	})
}
