//go:build !race

package simulator

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// acquiring returns a Mutation.Store that changes each record that an attempt acquires.
func acquiring(change func(*lambdaidem.Record, *actor)) func(lambdaidem.Store, *actor) lambdaidem.Store {
	return func(s lambdaidem.Store, a *actor) lambdaidem.Store {
		return wrapped{Store: s, acquire: func(ctx context.Context, c lambdaidem.Claim) (lambdaidem.Record, error) {
			rec, err := s.Acquire(ctx, c)
			if err == nil && rec.Token == c.Token {
				change(&rec, a)
			}
			return rec, err
		}}
	}
}

// removeSteps lets a takeover remove the record's steps.
func removeSteps(op string, body []byte) []byte {
	if describe(op, body) != takeOver {
		return body
	}
	var doc map[string]json.RawMessage
	var update string
	names := map[string]string{}
	must(json.Unmarshal(body, &doc), json.Unmarshal(doc["UpdateExpression"], &update), json.Unmarshal(doc["ExpressionAttributeNames"], &names))
	for placeholder, name := range map[string]string{"#gone_steps": "steps", "#gone_encoding": "encoding"} {
		names[placeholder] = name
		if strings.Contains(update, "REMOVE ") {
			update = strings.Replace(update, "REMOVE ", "REMOVE "+placeholder+", ", 1)
		} else {
			update += " REMOVE " + placeholder
		}
	}
	doc["UpdateExpression"], doc["ExpressionAttributeNames"] = marshal(update), marshal(names)
	return marshal(doc)
}

// stepMutations are mistakes with steps.
var stepMutations = []mistake{
	{Mutation{Name: "step's result of another record", Store: acquiring(func(rec *lambdaidem.Record, a *actor) {
		a.w.mu.Lock()
		defer a.w.mu.Unlock()
		for _, h := range a.w.journal.sorted() {
			for _, l := range h.lives {
				for name, s := range l.steps {
					if h.id != rec.ID {
						rec.Steps = lambdaidem.Steps{name: marshal(s.text)}
					}
				}
			}
		}
	})}, []Check{CheckOwnStep}},
	{Mutation{Name: "steps taken away by a takeover", Request: removeSteps}, []Check{CheckStepsKept}},
	{Mutation{Name: "steps not read at a takeover", Store: acquiring(func(rec *lambdaidem.Record, _ *actor) { rec.Steps = nil })}, []Check{CheckStepOnce}},
	{Mutation{Name: "step stored without the lease's condition", Request: both(rewrite("save step", token, always("#token", ":token")), rewrite("save step", "#status = :in_progress", always("#status", ":in_progress")), rewrite("save step", "size(#steps) < :step_count", "size(#steps) < :step_count OR "+always("#token", ":token")))}, []Check{CheckFenced, CheckCompletedNeverChanges}},
	{Mutation{Name: "downstream key made of the attempt too", Key: func(key string, r *run) string { return fmt.Sprint(key, r.attempt) }}, []Check{CheckDownstreamKey}},
	{Mutation{Name: "downstream key made of the step alone", Key: func(string, *run) string { return "same" }}, []Check{CheckDownstreamKey}},
	{Mutation{Name: "step that was not stored taken for stored", Store: func(s lambdaidem.Store, _ *actor) lambdaidem.Store {
		return unsaved{wrapped{Store: s}}
	}}, []Check{CheckOwnStep}},
}

// unsaved stores no steps, but reports success.
type unsaved struct{ wrapped }

func (u unsaved) SaveSteps(context.Context, lambdaidem.Lease, lambdaidem.Steps, time.Time) (lambdaidem.Record, error) {
	return lambdaidem.Record{}, nil
}
